package erasure

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// TenantTables have rows of a tenant that its sessions do not take with them, those first that refer to others. What
// only the function end_tenant may delete is not among them.
var TenantTables = []string{
	"import_lines", "imports", "recompaction_sessions", "recompactions", "replay_outcomes", "replay_sessions",
	"replays", "webhook_deliveries", "webhook_secrets", "webhook_turns", "webhooks", "events", "idempotency",
	"model_answers", "model_spending", "policy_versions", "policies", "due_sessions", "tenant_tasks",
	"findings", "search_settings", "retention", "verifications", "usage_days",
}

// DeleteTenant suspends a tenant for everything and begins the erasure that deletes it. Doing it twice changes nothing.
//
// Errors: ErrNotFound, ErrTenantHeld.
func DeleteTenant(ctx context.Context, s *postgres.Store, tenant uuid.UUID) (session.Erasure, error) {
	s = s.Seeing(postgres.AllSessions)
	return postgres.InTx(ctx, s, tenant, func(tx pgx.Tx) (begun session.Erasure, err error) {
		deletion, err := postgres.RowIn(ctx, tx, pgx.RowTo[*uuid.UUID], `
			SELECT erasure_id
			  FROM tenants
			 WHERE id = $1
			   FOR NO KEY UPDATE`, tenant)
		if err != nil {
			return begun, err
		}
		if deletion != nil {
			if err := postgres.SeeTenant(ctx, tx, audit.Operator); err != nil {
				return begun, err
			}
			return readErasure(ctx, tx, audit.Operator, *deletion)
		}
		if err := refuseHolds(ctx, tx, tenant); err != nil {
			return begun, err
		}
		return beginDeletion(ctx, s, tx, tenant)
	})
}

func beginDeletion(
	ctx context.Context, s *postgres.Store, tx pgx.Tx, tenant uuid.UUID,
) (begun session.Erasure, err error) {
	of := postgres.Erasing{
		Tenant: audit.Operator, ID: uuid.Must(uuid.NewV7()), Kind: session.ErasureOfTenant, Erased: &tenant,
	}
	err = postgres.Exec(ctx, tx, `
		UPDATE tenants
		   SET suspended_at = CASE WHEN suspended = 'all' THEN suspended_at ELSE now() END,
		       suspended = 'all', erasure_id = $2
		 WHERE id = $1`, tenant, of.ID)
	if err == nil {
		err = postgres.SeeTenant(ctx, tx, of.Tenant)
	}
	if err == nil {
		err = s.BeginErasure(ctx, tx, of)
	}
	if err == nil {
		err = postgres.AddTask(ctx, tx, of.Tenant, postgres.TaskErasure)
	}
	if err == nil {
		begun, err = readErasure(ctx, tx, of.Tenant, of.ID)
	}
	if err != nil {
		return begun, err
	}
	return begun, postgres.RecordOperator(ctx, tx, audit.TenantDelete, audit.Tenant, tenant.String(),
		map[string]any{"erasure": of.ID})
}

// A tenantHold is a legal hold on a tenant, or on one of its sessions.
type tenantHold struct {
	session string // "" for the tenant
	session.Hold
}

// holdOfTenant returns a hold that keeps a tenant, first its own, and nil if there is none.
func holdOfTenant(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (*tenantHold, error) {
	found, err := postgres.RowIn(ctx, tx, func(row pgx.CollectableRow) (h tenantHold, err error) {
		err = row.Scan(&h.session, &h.Reason, &h.PlacedBy, &h.PlacedAt)
		return h, err
	}, `
		SELECT '' AS session, hold, held_by, held_at
		  FROM tenants
		 WHERE id = $1 AND hold IS NOT NULL
		 UNION ALL
		SELECT s.id, h.reason, h.placed_by, h.placed_at
		  FROM session_holds h
		  JOIN sessions s ON s.tenant_id = h.tenant_id AND s.key = h.session_key
		 WHERE h.tenant_id = $1
		 ORDER BY session
		 LIMIT 1`, tenant)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	return &found, err
}

// refuseHolds returns ErrTenantHeld, which names the hold, if one keeps a tenant.
func refuseHolds(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	found, err := holdOfTenant(ctx, tx, tenant)
	if err != nil || found == nil {
		return err
	}
	if found.session == "" {
		return fmt.Errorf("%w: %q", session.ErrTenantHeld, found.Reason)
	}
	return fmt.Errorf("%w: %q, on the session %q", session.ErrTenantHeld, found.Reason, found.session)
}

// readProgress reads how far the deletion of a tenant is, and what keeps the tenant.
func readProgress(ctx context.Context, tx pgx.Tx, e *session.Erasure) error {
	if err := postgres.SeeTenant(ctx, tx, *e.ErasedTenant); err != nil {
		return err
	}
	e.TotalSessions, e.Held = new(e.Sessions), []string{}
	if e.State == session.ErasureDone { // a tenant that has the id now is another
		return nil
	}
	left, err := postgres.RowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT count(*)
		  FROM sessions
		 WHERE tenant_id = $1`, *e.ErasedTenant)
	if err != nil {
		return err
	}
	*e.TotalSessions += left
	keeps, err := holdOfTenant(ctx, tx, *e.ErasedTenant)
	if err == nil && keeps != nil {
		e.StoppedBy = &keeps.Hold
		if keeps.session != "" {
			e.Held = append(e.Held, keeps.session)
		}
	}
	return err
}

// atRest reports whether no session of a tenant that is deleted is left, and no job of it runs.
func (w *Work) atRest(ctx context.Context) (bool, error) {
	return postgres.ReadTx(ctx, w.store, w.of(), func(tx pgx.Tx) (bool, error) {
		left, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (SELECT FROM sessions WHERE tenant_id = $1)`, w.of())
		if err != nil || left {
			return false, err
		}
		runs, err := queue.RunsForTenant(ctx, tx, w.of())
		return !runs, err
	})
}

// eraseRows deletes what a tenant has beside its sessions, at most about limit rows, and returns how many;
// ErrTenantHeld.
func (w *Work) eraseRows(ctx context.Context, limit int) (int, error) {
	return postgres.InTx(ctx, w.store, w.of(), func(tx pgx.Tx) (int, error) {
		if err := refuseHolds(ctx, tx, w.of()); err != nil {
			return 0, err
		}
		return deleteRows(ctx, tx, w.of(), limit)
	})
}

func deleteRows(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, limit int) (rows int, err error) {
	for _, table := range TenantTables {
		if rows >= limit {
			return rows, nil
		}
		deleted, err := tx.Exec(ctx, `
			DELETE FROM `+table+`
			 WHERE tenant_id = $1 AND ctid = ANY (ARRAY(
			       SELECT ctid
			         FROM `+table+`
			        WHERE tenant_id = $1
			        LIMIT `+strconv.Itoa(limit-rows)+`))`, tenant)
		if err != nil {
			return rows, err
		}
		rows += int(deleted.RowsAffected())
	}
	return rows, nil
}

// lastRows is how many rows the transaction may still find that deletes a tenant.
const lastRows = 10_000

// finishTenant deletes the row of a tenant, its keys and its audit trail, and ends the erasure with its receipt.
//
// Errors: errUnfinished if there is anything left, or a job of the tenant runs; ErrHeld, ErrNotFound, ErrEnded.
func (w *Work) finishTenant(ctx context.Context, kept time.Duration) error {
	return w.store.InTenant(ctx, w.tenant, func(tx pgx.Tx) error {
		r, err := w.countedReceipt(ctx, tx)
		if err != nil {
			return err
		}
		r.Tenant = w.of()
		if err := postgres.SeeTenant(ctx, tx, w.of()); err != nil {
			return err
		}
		if r.Ended, err = w.endTenant(ctx, tx); err != nil {
			return err
		}
		if err := postgres.SeeTenant(ctx, tx, w.tenant); err != nil {
			return err
		}
		if err := w.recordEnd(ctx, tx, r.Ended); err != nil {
			return err
		}
		if r.Audit, err = headOf(ctx, tx, w.tenant); err != nil {
			return err
		}
		return w.end(ctx, tx, r, kept)
	})
}

// endTenant deletes the rest of a tenant, in a transaction that sees it, and returns the end of its audit trail; nil if
// it had none.
func (w *Work) endTenant(ctx context.Context, tx pgx.Tx) (*session.TrailHead, error) {
	tenant := w.of()
	rows, err := deleteRows(ctx, tx, tenant, lastRows)
	if err != nil {
		return nil, err
	}
	forgotten, err := queue.ForgetTenant(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	if rows >= lastRows || !forgotten {
		return nil, errUnfinished
	}
	var ended *session.TrailHead
	head, err := headOf(ctx, tx, tenant)
	switch {
	case err == nil:
		ended = &head
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, err
	}
	err = postgres.HeldError(postgres.Exec(ctx, tx, `SELECT end_tenant($1, $2)`, tenant, w.ID))
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23503" { // foreign_key_violation: something still refers to the tenant
		err = errUnfinished
	}
	return ended, err
}

// recordEnd records in the operators' trail that a tenant is gone, of which it forgets the name.
func (w *Work) recordEnd(ctx context.Context, tx pgx.Tx, ended *session.TrailHead) error {
	blanked, err := postgres.BlankedBy(ctx, tx, `SELECT * FROM audit_blank_tenant($1)`, w.of())
	if err != nil {
		return err
	}
	detail := map[string]any{"tenant": w.of(), "ended": ended}
	if blanked.Rows > 0 {
		detail["blanked_from"], detail["blanked"] = blanked.First, blanked.Rows
	}
	return postgres.Record(ctx, tx, w.tenant, audit.ErasureFinish, audit.Erasure, w.ID.String(), detail)
}
