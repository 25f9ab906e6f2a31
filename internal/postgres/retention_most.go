package postgres

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// The longest retention that operators leave the tenant $1, in seconds, as SQL expressions; NULL is no bound, and
// least() ignores it.
const (
	mostIdle = `(SELECT most_idle_seconds FROM tenants WHERE id = $1)`
	mostAge  = `(SELECT most_age_seconds FROM tenants WHERE id = $1)`
)

// atMost returns the smaller one of two SQL expressions, of which NULL is none.
func atMost(a, b string) string { return `least(` + a + `, ` + b + `)` }

// mostRetention reads the longest retention that operators leave a tenant.
func mostRetention(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (session.RetentionBound, error) {
	return RowIn(ctx, tx, pgx.RowToStructByPos[session.RetentionBound], `SELECT `+mostIdle+`, `+mostAge, tenant)
}

// refuseLonger returns an InvalidError for a retention that is longer than operators leave the tenant; pointer is that
// of its object.
func refuseLonger(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, wanted session.Retention, pointer string) error {
	bound, err := mostRetention(ctx, tx, tenant)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		member        string
		wanted, bound *int64
	}{
		{"idle_seconds", wanted.IdleSeconds, bound.IdleSeconds},
		{"max_age_seconds", wanted.AgeSeconds, bound.AgeSeconds},
	} {
		if of.wanted != nil && of.bound != nil && *of.wanted > *of.bound {
			return session.Invalid(pointer+"/"+of.member, "invalid_request", "must be at most %d, to which the "+
				"operator holds this tenant, not %d: GET /v1/retention shows it as at_most", *of.bound, *of.wanted)
		}
	}
	return nil
}

// boundRetention changes the longest retention of a tenant, in the transaction that has locked its row. What is longer
// stays written and is held to the bound; a worker looks for what has expired by it at once.
func boundRetention(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, before, after session.RetentionBound) error {
	d := auditEntry{action: audit.RetentionBound, object: audit.Tenant, id: tenant.String()}
	var err error
	if d.before, err = json.Marshal(before); err != nil {
		return err
	}
	if d.after, err = json.Marshal(after); err != nil || string(d.before) == string(d.after) {
		return err
	}
	err = Exec(ctx, tx, `
		UPDATE tenants
		   SET most_idle_seconds = $2, most_age_seconds = $3
		 WHERE id = $1`, tenant, after.IdleSeconds, after.AgeSeconds)
	if err != nil {
		return err
	}
	if err := expectExpiry(ctx, tx, tenant); err != nil {
		return err
	}
	err = Exec(ctx, tx, `
		UPDATE retention
		   SET looked_at = '-infinity'
		 WHERE tenant_id = $1`, tenant)
	if err != nil {
		return err
	}
	return record(ctx, tx, tenant, d)
}
