package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// A group is a recompaction of many tenants: one of each of them, with the same group. Only a store whose login has the
// rights of AdminRole reaches it. A transaction writes for one tenant at a time: it goes through them in the order of
// their ids, so that no two wait for each other.

// groupsSQL reads groups, each by the recompaction of its first tenant.
const groupsSQL = `
	SELECT group_id AS id, array_agg(tenant_id ORDER BY tenant_id) AS tenants,
	       (array_agg(filter ORDER BY tenant_id))[1] AS filter, (array_agg(policy ORDER BY tenant_id))[1] AS policy,
	       (array_agg(jsonb_build_object('MaxRunning', max_running, 'PerMinute', per_minute, 'StartAt', start_at,
	                                     'Hours', hours)))[1] AS pace,
	       bool_or(ask) AS ask, created_at
	  FROM recompactions
	 WHERE group_id IS NOT NULL`

var scanGroup = pgx.RowToStructByName[session.RecompactionGroup]

// CreateGroup begins a recompaction of the tenants that it names, or of all, and returns it with that of each tenant.
// One with an id that there is already is that one, and is not begun again.
//
// Errors: an InvalidError if there is no such tenant, or there are too many;
// ErrIdempotencyReused if the one with this id does something else.
func (s *Store) CreateGroup(
	ctx context.Context, c session.RecompactionGroup,
) (made session.RecompactionGroup, parts []session.RecompactionPart, err error) {
	named := c.Tenants != nil
	err = s.Seeing(WithCold).InTenant(ctx, uuid.Nil, func(tx pgx.Tx) (err error) {
		if c.Tenants, err = tenantsOf(ctx, tx, c.Tenants); err != nil {
			return err
		}
		if err := Exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, c.ID.String()); err != nil {
			return err
		}
		made, err = readGroup(ctx, tx, c.ID)
		switch {
		case errors.Is(err, session.ErrNotFound):
			made = c
			parts, err = s.beginParts(ctx, tx, c)
		case err == nil:
			if err = refuseOther(ctx, tx, c, made, named); err == nil {
				parts, err = readParts(ctx, tx, made)
			}
		}
		return err
	})
	if len(parts) > 0 {
		made.CreatedAt = parts[0].CreatedAt
	}
	return made, parts, err
}

// refuseOther returns ErrIdempotencyReused unless the group that there is does the same as c. If c names no tenants,
// those that are younger than the group don't matter. An old group may have lost tenants whose recompactions are not
// kept any more.
func refuseOther(ctx context.Context, tx pgx.Tx, c, there session.RecompactionGroup, named bool) error {
	same, err := RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT filter = $2::jsonb AND ask = $3 AND max_running = $4 AND per_minute IS NOT DISTINCT FROM $5
		       AND start_at IS NOT DISTINCT FROM $6 AND hours IS NOT DISTINCT FROM $7::jsonb
		       AND (NOT $9 OR $10 <@ $8::uuid[])
		       AND NOT EXISTS (
		           SELECT
		             FROM tenants t
		            WHERE t.id = ANY ($8)
		              AND t.id <> ALL ($10)
		              AND ($9 OR t.created_at <= r.created_at)
		              AND r.created_at > now() - $11::interval)
		  FROM recompactions r
		 WHERE group_id = $1
		 ORDER BY tenant_id
		 LIMIT 1`, c.ID, c.Filter, c.Ask, c.Pace.MaxRunning, c.Pace.PerMinute, c.Pace.StartAt, c.Pace.Hours, c.Tenants,
		named, there.Tenants, recompactionRetention)
	if err == nil && (!same || !bytes.Equal(compacted(c.Policy), compacted(there.Policy))) {
		err = fmt.Errorf("recompaction %s: %w", c.ID, session.ErrIdempotencyReused)
	}
	return err
}

// compacted returns JSON without the spaces between its tokens.
func compacted(document json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, document) // it is empty, or was parsed
	return b.Bytes()
}

// beginParts begins the recompactions of a group, and records that.
func (s *Store) beginParts(
	ctx context.Context, tx pgx.Tx, c session.RecompactionGroup,
) (parts []session.RecompactionPart, err error) {
	part := session.Recompaction{Filter: c.Filter, Policy: c.Policy, Pace: c.Pace, Ask: c.Ask, Group: &c.ID}
	err = eachTenant(ctx, tx, c.Tenants, func(tenant uuid.UUID) error {
		made, err := s.beginRecompaction(ctx, tx, tenant, part)
		parts = append(parts, session.RecompactionPart{Tenant: tenant, Recompaction: made})
		return err
	})
	if err != nil {
		return nil, err
	}
	return parts, recordOperator(ctx, tx, auditEntry{
		action: audit.RecompactionStart, object: audit.Recompaction, id: c.ID.String(),
		detail: about{"policy": c.Policy, "ask": c.Ask, "tenants": len(c.Tenants)}, // the tenants' rows have the filter
	})
}

// tenantsOf returns the tenants that are named, or all, by their ids.
func tenantsOf(ctx context.Context, tx pgx.Tx, named []uuid.UUID) ([]uuid.UUID, error) {
	found, err := RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
		SELECT id
		  FROM tenants
		 WHERE ($1::uuid[] IS NULL OR id = ANY ($1))
		 ORDER BY id
		 LIMIT $2`, named, session.MaxRecompactedTenants+1)
	if err != nil {
		return nil, err
	}
	for _, id := range named {
		if !slices.Contains(found, id) {
			return nil, session.Invalid("/tenants", "invalid_request", "there is no tenant %s", id)
		}
	}
	if len(found) == 0 {
		return nil, session.Invalid("/tenants", "invalid_request", "there is no tenant yet")
	}
	if len(found) > session.MaxRecompactedTenants {
		return nil, session.Invalid("/tenants", "invalid_request", "a recompaction has at most %d tenants: name some",
			session.MaxRecompactedTenants)
	}
	return found, nil
}

// eachTenant runs do for tenants, in a transaction that sees each in its turn.
func eachTenant(ctx context.Context, tx pgx.Tx, tenants []uuid.UUID, do func(tenant uuid.UUID) error) error {
	for _, tenant := range tenants {
		if err := Exec(ctx, tx, setTenant, tenant.String()); err != nil {
			return err
		}
		if err := do(tenant); err != nil {
			return fmt.Errorf("tenant %s: %w", tenant, err)
		}
	}
	return nil
}

func readGroup(ctx context.Context, tx pgx.Tx, id uuid.UUID) (session.RecompactionGroup, error) {
	return RowIn(ctx, tx, scanGroup, groupsSQL+` AND group_id = $1
		 GROUP BY created_at, group_id`, id)
}

// Groups returns a page of all groups, newest first.
func (s *Store) Groups(ctx context.Context, page session.Page) ([]session.RecompactionGroup, error) {
	return asOperator(ctx, s, func(tx pgx.Tx) ([]session.RecompactionGroup, error) {
		return RowsIn(ctx, tx, scanGroup, groupsSQL+` AND (created_at, group_id) < ($1, $2)
			 GROUP BY created_at, group_id
			 ORDER BY created_at DESC, group_id DESC
			 LIMIT $3`, PageArgs(uuid.Nil, page)[1:]...)
	})
}

// Group returns a group with its recompactions, by tenant, but for those that are not kept any more; ErrNotFound.
func (s *Store) Group(
	ctx context.Context, id uuid.UUID,
) (c session.RecompactionGroup, parts []session.RecompactionPart, err error) {
	err = s.inSnapshot(ctx, uuid.Nil, func(tx pgx.Tx) error {
		if c, err = readGroup(ctx, tx, id); err != nil {
			return err
		}
		parts, err = readParts(ctx, tx, c)
		return err
	})
	return c, parts, err
}

// readParts reads the recompactions of a group.
func readParts(
	ctx context.Context, tx pgx.Tx, c session.RecompactionGroup,
) (parts []session.RecompactionPart, err error) {
	err = eachTenant(ctx, tx, c.Tenants, func(tenant uuid.UUID) error {
		found, err := RowsIn(ctx, tx, scanRecompaction, `
			SELECT `+recompactionColumns+`
			  FROM recompactions r
			 WHERE r.tenant_id = $1 AND r.group_id = $2`, tenant, c.ID)
		for i := range found {
			parts = append(parts, session.RecompactionPart{Tenant: tenant, Recompaction: found[i]})
		}
		return err
	})
	return parts, err
}

// ControlGroup does to each recompaction of a group what is asked: to all or to none.
//
// Errors: ErrNotFound.
func (s *Store) ControlGroup(ctx context.Context, id uuid.UUID, what Control) error {
	return s.InTenant(ctx, uuid.Nil, func(tx pgx.Tx) error {
		c, err := readGroup(ctx, tx, id)
		if err != nil {
			return err
		}
		parts, err := readParts(ctx, tx, c)
		if err != nil {
			return err
		}
		tenants, changed := make([]uuid.UUID, len(parts)), 0
		for i := range parts {
			tenants[i] = parts[i].Tenant
		}
		err = eachTenant(ctx, tx, tenants, func(tenant uuid.UUID) error {
			part := parts[slices.Index(tenants, tenant)].ID
			one, err := s.controlPart(ctx, tx, tenant, part, what)
			changed += one
			return err
		})
		if err != nil || changed == 0 {
			return err
		}
		return recordOperator(ctx, tx, auditEntry{
			action: controls[what], object: audit.Recompaction, id: id.String(),
			detail: about{"recompactions": changed},
		})
	})
}

// controlPart controls a recompaction and records that, and returns how many have changed.
func (s *Store) controlPart(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, what Control) (int, error) {
	changed, err := s.control(ctx, tx, tenant, id, what)
	if err != nil || !changed {
		return 0, err
	}
	return 1, record(ctx, tx, tenant, auditEntry{action: controls[what], object: audit.Recompaction, id: id.String()})
}

// CompareGroup returns what CompareRecompaction does for all recompactions of a group; ErrNotFound.
func (s *Store) CompareGroup(ctx context.Context, id uuid.UUID) (sum session.Comparison, err error) {
	err = s.inSnapshot(ctx, uuid.Nil, func(tx pgx.Tx) error {
		c, err := readGroup(ctx, tx, id)
		if err != nil {
			return err
		}
		parts, err := readParts(ctx, tx, c)
		for i := range parts {
			if err != nil {
				break
			}
			if err = Exec(ctx, tx, setTenant, parts[i].Tenant.String()); err != nil {
				break
			}
			var one session.Comparison
			one, err = compareIn(ctx, tx, parts[i].Tenant, parts[i].ID)
			sum.Add(one)
		}
		return err
	})
	return sum, err
}

// CountGroup does what CountRecompaction does for the tenants of a group. The sample has at least one session of
// each tenant that has any.
func (s *Store) CountGroup(ctx context.Context, c session.RecompactionGroup, sample int) (
	sum session.RecompactionCount, err error,
) {
	err = s.inSnapshot(ctx, uuid.Nil, func(tx pgx.Tx) error {
		tenants, err := tenantsOf(ctx, tx, c.Tenants)
		if err != nil {
			return err
		}
		each := max(1, sample/len(tenants))
		return eachTenant(ctx, tx, tenants, func(tenant uuid.UUID) error {
			found, err := countIn(ctx, tx, tenant, c.Filter, each)
			sum.Add(found)
			return err
		})
	})
	slices.SortFunc(sum.Sample, func(a, b session.SampledSession) int { // not only the first tenants, if time is short
		return bytes.Compare(a.Key.Key[8:], b.Key.Key[8:])
	})
	return sum, err
}
