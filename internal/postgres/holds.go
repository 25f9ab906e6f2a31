package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

var scanHold = pgx.RowToStructByPos[session.Hold]

const sessionHoldSQL = `
	SELECT h.reason, h.placed_by, h.placed_at
	  FROM session_holds h
	 WHERE h.tenant_id = $1 AND h.session_key = $2`

// SessionHold returns the legal hold of a session; ErrNotFound.
func (s *Store) SessionHold(ctx context.Context, at session.Address) (session.Hold, error) {
	return InSession(ctx, s.Seeing(AllSessions), at, func(tx pgx.Tx, key session.Key) (session.Hold, error) {
		return RowIn(ctx, tx, scanHold, sessionHoldSQL, key.Tenant, key.Key)
	})
}

// HoldSession places a legal hold on a session, or changes the reason of the one that it has. An erasure that is under
// way is waited for; ErrNotFound.
func (s *Store) HoldSession(ctx context.Context, at session.Address, reason string) (session.Hold, error) {
	return InTx(ctx, s.Seeing(AllSessions), at.Tenant, func(tx pgx.Tx) (session.Hold, error) {
		row, err := lockSession(ctx, tx, at)
		if err != nil {
			return session.Hold{}, err
		}
		before, err := RowIn(ctx, tx, scanHold, sessionHoldSQL, at.Tenant, row.Key.Key)
		if err == nil && before.Reason == reason || err != nil && !errors.Is(err, session.ErrNotFound) {
			return before, err
		}
		placed, err := RowIn(ctx, tx, scanHold, `
			INSERT INTO session_holds AS h (tenant_id, session_key, reason, placed_by)
			VALUES ($1, $2, $3, nullif($4, '00000000-0000-0000-0000-000000000000'::uuid))
			    ON CONFLICT (tenant_id, session_key) DO UPDATE
			   SET reason = excluded.reason, placed_by = excluded.placed_by, placed_at = excluded.placed_at
			RETURNING h.reason, h.placed_by, h.placed_at`, at.Tenant, row.Key.Key, reason, audit.From(ctx).ID)
		if err != nil {
			return placed, err
		}
		return placed, recordSession(ctx, tx, at, audit.HoldPlace, about{"reason": reason})
	})
}

// ReleaseSession lifts the legal hold of a session, if it has one; ErrNotFound.
func (s *Store) ReleaseSession(ctx context.Context, at session.Address) error {
	_, err := ChangeInSession(ctx, s.Seeing(AllSessions), at, func(tx pgx.Tx, key session.Key) (struct{}, error) {
		lifted, err := tx.Exec(ctx, `
			DELETE FROM session_holds
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
		if err != nil || lifted.RowsAffected() == 0 {
			return struct{}{}, err
		}
		return struct{}{}, recordSession(ctx, tx, at, audit.HoldLift, nil)
	})
	return err
}

const tenantHoldSQL = `
	SELECT hold, held_by, held_at
	  FROM tenants
	 WHERE id = $1 AND hold IS NOT NULL`

// TenantHold returns the legal hold of a tenant; ErrNotFound.
func (s *Store) TenantHold(ctx context.Context, tenant uuid.UUID) (session.Hold, error) {
	return QueryRow(ctx, s, tenant, scanHold, tenantHoldSQL, tenant)
}

// HoldTenant places a legal hold on all sessions of a tenant, or changes the reason of the one that it has. It waits
// for erasures that are under way.
func (s *Store) HoldTenant(ctx context.Context, tenant uuid.UUID, reason string) (session.Hold, error) {
	return InTx(ctx, s, tenant, func(tx pgx.Tx) (session.Hold, error) {
		before, err := RowIn(ctx, tx, scanHold, tenantHoldSQL+` FOR NO KEY UPDATE`, tenant)
		if err == nil && before.Reason == reason || err != nil && !errors.Is(err, session.ErrNotFound) {
			return before, err
		}
		placed, err := RowIn(ctx, tx, scanHold, `
			UPDATE tenants
			   SET hold = $2, held_by = nullif($3, '00000000-0000-0000-0000-000000000000'::uuid), held_at = now()
			 WHERE id = $1
			RETURNING hold, held_by, held_at`, tenant, reason, audit.From(ctx).ID)
		if err != nil {
			return placed, err
		}
		return placed, record(ctx, tx, tenant, auditEntry{
			action: audit.HoldPlace, object: audit.Tenant, id: tenant.String(), detail: about{"reason": reason},
		})
	})
}

// ReleaseTenant lifts the legal hold of a tenant, if it has one. Holds of its sessions stay.
func (s *Store) ReleaseTenant(ctx context.Context, tenant uuid.UUID) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		lifted, err := tx.Exec(ctx, `
			UPDATE tenants
			   SET hold = NULL, held_by = NULL, held_at = NULL
			 WHERE id = $1 AND hold IS NOT NULL`, tenant)
		if err != nil || lifted.RowsAffected() == 0 {
			return err
		}
		return record(ctx, tx, tenant, auditEntry{action: audit.HoldLift, object: audit.Tenant, id: tenant.String()})
	})
}

// refuseHeld returns ErrHeld if a legal hold keeps a session, in the transaction that has locked it. The database
// refuses the deletion itself, see heldError; this spares the work.
func refuseHeld(ctx context.Context, tx pgx.Tx, key session.Key) error {
	held, err := RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT EXISTS (SELECT FROM session_holds WHERE tenant_id = $1 AND session_key = $2)
		    OR EXISTS (SELECT FROM tenants WHERE id = $1 AND hold IS NOT NULL)`, key.Tenant, key.Key)
	if err == nil && held {
		err = session.ErrHeld
	}
	return err
}

// heldError returns ErrHeld for the database's error that a legal hold keeps a session or its tenant.
func heldError(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.ConstraintName == "session_holds_session" || pg.ConstraintName == "tenants_hold") {
		return session.ErrHeld
	}
	return err
}
