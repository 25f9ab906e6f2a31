package erasure

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

var scanHold = pgx.RowToStructByPos[session.Hold]

const sessionHoldSQL = `
	SELECT h.reason, h.placed_by, h.placed_at
	  FROM session_holds h
	 WHERE h.tenant_id = $1 AND h.session_key = $2`

// SessionHold returns the legal hold of a session; ErrNotFound.
func SessionHold(ctx context.Context, s *postgres.Store, at session.Address) (session.Hold, error) {
	s = s.Seeing(postgres.AllSessions)
	return postgres.InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (session.Hold, error) {
		return postgres.RowIn(ctx, tx, scanHold, sessionHoldSQL, key.Tenant, key.Key)
	})
}

// HoldSession places a legal hold on a session, or changes the reason of the one that it has. An erasure that is under
// way is waited for; ErrNotFound.
func HoldSession(ctx context.Context, s *postgres.Store, at session.Address, reason string) (session.Hold, error) {
	return postgres.InTx(ctx, s.Seeing(postgres.AllSessions), at.Tenant, func(tx pgx.Tx) (session.Hold, error) {
		key, err := postgres.LockSession(ctx, tx, at)
		if err != nil {
			return session.Hold{}, err
		}
		before, err := postgres.RowIn(ctx, tx, scanHold, sessionHoldSQL, at.Tenant, key.Key)
		if err == nil && before.Reason == reason || err != nil && !errors.Is(err, session.ErrNotFound) {
			return before, err
		}
		placed, err := postgres.RowIn(ctx, tx, scanHold, `
			INSERT INTO session_holds AS h (tenant_id, session_key, reason, placed_by)
			VALUES ($1, $2, $3, nullif($4, '00000000-0000-0000-0000-000000000000'::uuid))
			    ON CONFLICT (tenant_id, session_key) DO UPDATE
			   SET reason = excluded.reason, placed_by = excluded.placed_by, placed_at = excluded.placed_at
			RETURNING h.reason, h.placed_by, h.placed_at`, at.Tenant, key.Key, reason, audit.From(ctx).ID)
		if err != nil {
			return placed, err
		}
		return placed, postgres.Record(ctx, tx, at.Tenant, audit.HoldPlace, audit.Session, at.ID,
			map[string]string{"reason": reason})
	})
}

// ReleaseSession lifts the legal hold of a session, if it has one; ErrNotFound.
func ReleaseSession(ctx context.Context, s *postgres.Store, at session.Address) error {
	s = s.Seeing(postgres.AllSessions)
	_, err := postgres.ChangeInSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (struct{}, error) {
		lifted, err := tx.Exec(ctx, `
			DELETE FROM session_holds
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
		if err != nil || lifted.RowsAffected() == 0 {
			return struct{}{}, err
		}
		return struct{}{}, postgres.Record(ctx, tx, at.Tenant, audit.HoldLift, audit.Session, at.ID, nil)
	})
	return err
}

const tenantHoldSQL = `
	SELECT hold, held_by, held_at
	  FROM tenants
	 WHERE id = $1 AND hold IS NOT NULL`

// TenantHold returns the legal hold of a tenant; ErrNotFound.
func TenantHold(ctx context.Context, s *postgres.Store, tenant uuid.UUID) (session.Hold, error) {
	return postgres.QueryRow(ctx, s, tenant, scanHold, tenantHoldSQL, tenant)
}

// HoldTenant places a legal hold on all sessions of a tenant, or changes the reason of the one that it has. It waits
// for erasures that are under way.
func HoldTenant(ctx context.Context, s *postgres.Store, tenant uuid.UUID, reason string) (session.Hold, error) {
	return postgres.InTx(ctx, s, tenant, func(tx pgx.Tx) (session.Hold, error) {
		before, err := postgres.RowIn(ctx, tx, scanHold, tenantHoldSQL+` FOR NO KEY UPDATE`, tenant)
		if err == nil && before.Reason == reason || err != nil && !errors.Is(err, session.ErrNotFound) {
			return before, err
		}
		placed, err := postgres.RowIn(ctx, tx, scanHold, `
			UPDATE tenants
			   SET hold = $2, held_by = nullif($3, '00000000-0000-0000-0000-000000000000'::uuid), held_at = now()
			 WHERE id = $1
			RETURNING hold, held_by, held_at`, tenant, reason, audit.From(ctx).ID)
		if err != nil {
			return placed, err
		}
		return placed, postgres.Record(ctx, tx, tenant, audit.HoldPlace, audit.Tenant, tenant.String(),
			map[string]string{"reason": reason})
	})
}

// ReleaseTenant lifts the legal hold of a tenant, if it has one. Holds of its sessions stay.
func ReleaseTenant(ctx context.Context, s *postgres.Store, tenant uuid.UUID) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		lifted, err := tx.Exec(ctx, `
			UPDATE tenants
			   SET hold = NULL, held_by = NULL, held_at = NULL
			 WHERE id = $1 AND hold IS NOT NULL`, tenant)
		if err != nil || lifted.RowsAffected() == 0 {
			return err
		}
		return postgres.Record(ctx, tx, tenant, audit.HoldLift, audit.Tenant, tenant.String(), nil)
	})
}

// holdsSQL reads a page of the legal holds of the tenant $1, newest first: those of sessions, and that of the tenant,
// whose key is the nil UUID.
var holdsSQL = `
	SELECT s.id, l.key, l.reason, l.placed_by, l.placed_at
	  FROM (SELECT *
	          FROM (SELECT session_key AS key, reason, placed_by, placed_at
	                  FROM session_holds
	                 WHERE tenant_id = $1` + postgres.NewestFirst(`placed_at`, `session_key`) + `) of_sessions
	         UNION ALL
	        SELECT '00000000-0000-0000-0000-000000000000', hold, held_by, held_at
	          FROM tenants
	         WHERE id = $1 AND hold IS NOT NULL
	           AND (held_at, '00000000-0000-0000-0000-000000000000'::uuid) < ($2, $3)
	         ORDER BY 4 DESC, 1 DESC
	         LIMIT $4) l
	  LEFT JOIN sessions s ON s.tenant_id = $1 AND s.key = l.key
	 ORDER BY l.placed_at DESC, l.key DESC`

// Holds lists a tenant's legal holds, newest first, its own among them.
func Holds(ctx context.Context, s *postgres.Store, tenant uuid.UUID, page session.Page) ([]session.ListedHold, error) {
	return postgres.QueryRows(ctx, s, tenant, pgx.RowToStructByPos[session.ListedHold], holdsSQL,
		postgres.PageArgs(tenant, page)...)
}
