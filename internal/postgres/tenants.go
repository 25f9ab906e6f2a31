package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// CreateTenant creates a tenant with its default policy; ErrTenantExists if the name is taken.
func (s *Store) CreateTenant(ctx context.Context, name string, policy session.Policy) (session.Tenant, error) {
	made, _, err := s.ProvisionTenant(ctx, session.NewTenant{ID: uuid.Must(uuid.NewV7()), Name: name, Policy: policy})
	return made.Tenant, err
}

// ProvisionTenant creates a tenant with its default policy, its quotas and its first key, or nothing.
//
// Errors: ErrTenantExists.
func (s *Store) ProvisionTenant(
	ctx context.Context, t session.NewTenant,
) (made session.TenantDetails, key *session.APIKey, err error) {
	err = s.InTenant(ctx, t.ID, func(tx pgx.Tx) (err error) {
		made, err = RowIn(ctx, tx, scanTenant, `
			INSERT INTO tenants (id, name, limits)
			VALUES ($1, $2, coalesce($3::jsonb, '{}'))
			RETURNING `+tenantColumns, t.ID, t.Name, t.Quotas)
		switch {
		case Violates(err, "tenants_name_key"):
			err = fmt.Errorf("tenant %q: %w", t.Name, session.ErrTenantExists)
		case Violates(err, "tenants_pkey"):
			err = fmt.Errorf("tenant %s: %w", t.ID, session.ErrTenantExists)
		}
		if err == nil {
			err = insertDefaultPolicy(ctx, tx, t.ID, t.Policy)
		}
		if err == nil {
			made.MostKept = t.MostKept
			err = boundRetention(ctx, tx, t.ID, session.RetentionBound{}, t.MostKept)
		}
		if err == nil && t.Key != nil {
			key = new(session.APIKey)
			*key, err = makeKey(ctx, tx, t.ID, *t.Key)
			made.Usage.LiveKeys = 1
		}
		if err != nil {
			return err
		}
		return RecordOperator(ctx, tx, audit.TenantCreate, audit.Tenant, t.ID.String(), about{"name": t.Name})
	})
	return made, key, err
}

const tenantColumns = `id, name, created_at, suspended, suspended_at, erasure_id, limits,
	most_idle_seconds, most_age_seconds`

func scanTenant(row pgx.CollectableRow) (t session.TenantDetails, err error) {
	err = row.Scan(&t.ID, &t.Name, &t.CreatedAt, &t.Suspended, &t.SuspendedAt, &t.Erasure, &t.Quotas,
		&t.MostKept.IdleSeconds, &t.MostKept.AgeSeconds)
	return t, err
}

// ChangeTenant renames a tenant, suspends it or ends that, gives it quotas, and bounds its retention.
//
// Errors: ErrNotFound, ErrTenantExists if the name is taken, ErrTenantDeleted.
func (s *Store) ChangeTenant(
	ctx context.Context, id uuid.UUID, c session.TenantChange,
) (session.TenantDetails, error) {
	return InTx(ctx, s, id, func(tx pgx.Tx) (changed session.TenantDetails, err error) {
		before, err := RowIn(ctx, tx, scanTenant, `
			SELECT `+tenantColumns+`
			  FROM tenants
			 WHERE id = $1
			   FOR NO KEY UPDATE`, id)
		if err == nil && before.Erasure != nil {
			err = session.ErrTenantDeleted
		}
		if err != nil {
			return changed, err
		}
		changed, err = RowIn(ctx, tx, scanTenant, `
			UPDATE tenants
			   SET name = coalesce($2, name),
			       suspended = CASE WHEN $3::text IS NULL THEN suspended ELSE nullif($3, '') END,
			       suspended_at = CASE WHEN $3 IS NULL OR $3 = coalesce(suspended, '') THEN suspended_at
			                           WHEN $3 <> '' THEN now() END,
			       limits = coalesce($4::jsonb, limits)
			 WHERE id = $1
			RETURNING `+tenantColumns, id, c.Name, c.Suspended, c.Quotas)
		if Violates(err, "tenants_name_key") {
			return changed, fmt.Errorf("tenant %q: %w", *c.Name, session.ErrTenantExists)
		}
		if err == nil {
			changed.Usage, err = usageOf(ctx, tx, id)
		}
		if err == nil {
			err = recordChange(ctx, tx, before, changed)
		}
		if err == nil && c.MostKept != nil {
			changed.MostKept = *c.MostKept
			err = boundRetention(ctx, tx, id, before.MostKept, changed.MostKept)
		}
		return changed, err
	})
}

// recordChange records what is different of a tenant: its quotas as whoever sets them alone does, and the rest.
func recordChange(ctx context.Context, tx pgx.Tx, before, after session.TenantDetails) error {
	was, err := json.Marshal(tenantState{before.Name, before.Suspended})
	if err != nil {
		return err
	}
	is, err := json.Marshal(tenantState{after.Name, after.Suspended})
	if err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		err = record(ctx, tx, after.ID, auditEntry{
			action: audit.TenantChange, object: audit.Tenant, id: after.ID.String(), before: was, after: is,
		})
	}
	if err != nil {
		return err
	}
	return recordLimits(ctx, tx, after.ID, before.Quotas, after.Quotas)
}

// tenantState is what the audit trail says of a tenant, beside its quotas.
type tenantState struct {
	Name      string              `json:"name"`
	Suspended *session.Suspension `json:"suspended"`
}

// TenantExists reports whether there is a tenant.
func (s *Store) TenantExists(ctx context.Context, id uuid.UUID) (bool, error) {
	return QueryRow(ctx, s, id, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM tenants WHERE id = $1)`, id)
}

// Tenant returns a tenant with what it has; ErrNotFound.
func (s *Store) Tenant(ctx context.Context, id uuid.UUID) (session.TenantDetails, error) {
	return ReadTx(ctx, s.Seeing(AllSessions), id, func(tx pgx.Tx) (found session.TenantDetails, err error) {
		found, err = RowIn(ctx, tx, scanTenant, `
			SELECT `+tenantColumns+`
			  FROM tenants
			 WHERE id = $1`, id)
		if err == nil {
			found.Usage, err = usageOf(ctx, tx, id)
		}
		return found, err
	})
}

// TenantPage returns a page of all tenants with what they have, newest first, as a login of operators sees them.
func (s *Store) TenantPage(ctx context.Context, page session.Page) ([]session.TenantDetails, error) {
	return ReadTx(ctx, s.Seeing(AllSessions), uuid.Nil, func(tx pgx.Tx) ([]session.TenantDetails, error) {
		found, err := RowsIn(ctx, tx, scanTenant, `
			SELECT `+tenantColumns+`
			  FROM tenants
			 WHERE (created_at, id) < ($1, $2)
			 ORDER BY created_at DESC, id DESC
			 LIMIT $3`, PageArgs(uuid.Nil, page)[1:]...)
		for i := range found {
			if err != nil {
				break
			}
			if err = Exec(ctx, tx, setTenant, found[i].ID.String()); err == nil {
				found[i].Usage, err = usageOf(ctx, tx, found[i].ID)
			}
		}
		return found, err
	})
}

// usageOf returns what a tenant has, in a transaction that sees it. It reads no session's row: tokens and the last
// append are those that the ledger has counted, and sessions are counted in an index. A plan for any tenant expects as
// many rows as tenants have on average: where a few have most, PostgreSQL would read all of a table for a small one.
func usageOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (session.TenantUsage, error) {
	if err := Exec(ctx, tx, `SET LOCAL plan_cache_mode = force_custom_plan`); err != nil {
		return session.TenantUsage{}, err
	}
	return RowIn(ctx, tx, pgx.RowToStructByPos[session.TenantUsage], `
		SELECT (SELECT count(*)
		          FROM sessions
		         WHERE tenant_id = $1),
		       (SELECT coalesce(sum(tokens), 0)::bigint
		          FROM usage_days
		         WHERE tenant_id = $1),
		       (SELECT max(appended_at)
		          FROM usage_sessions
		         WHERE tenant_id = $1),
		       (SELECT count(*)
		          FROM api_keys
		         WHERE tenant_id = $1
		           AND revoked_at IS NULL
		           AND (expires_at IS NULL OR expires_at > now()))`, tenant)
}

// Tenants returns all tenants by name. The table has no row-level security: it belongs to the operator.
func (s *Store) Tenants(ctx context.Context) ([]session.Tenant, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT id, name, created_at
		  FROM tenants
		 ORDER BY name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[session.Tenant])
}

// TenantNamed returns the tenant of this id or, if there is none, of this name; ErrNotFound.
func (s *Store) TenantNamed(ctx context.Context, nameOrID string) (t session.Tenant, err error) {
	id, _ := uuid.Parse(nameOrID) // the nil one is no tenant's
	err = s.pool.QueryRow(ctx, `
		SELECT id, name, created_at
		  FROM tenants
		 WHERE name = $1 OR id = $2
		 ORDER BY id = $2 DESC
		 LIMIT 1`, nameOrID, id).Scan(&t.ID, &t.Name, &t.CreatedAt)
	if err != nil {
		return t, fmt.Errorf("tenant %q: %w", nameOrID, NotFound(err))
	}
	return t, nil
}

// RequireTenant returns ErrForbidden unless a tenant has an id or a name; "" is any.
func (s *Store) RequireTenant(ctx context.Context, tenant uuid.UUID, nameOrID string) error {
	if nameOrID == "" || nameOrID == tenant.String() {
		return nil
	}
	named, err := QueryRow(ctx, s, tenant, pgx.RowTo[bool], `
		SELECT name = $2
		  FROM tenants
		 WHERE id = $1`, tenant, nameOrID)
	if err == nil && !named {
		err = fmt.Errorf("tenant %q: %w", nameOrID, session.ErrForbidden)
	}
	return err
}
