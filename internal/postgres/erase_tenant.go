package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
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
func (s *Store) DeleteTenant(ctx context.Context, tenant uuid.UUID) (session.Erasure, error) {
	return InTx(ctx, s.Seeing(AllSessions), tenant, func(tx pgx.Tx) (begun session.Erasure, err error) {
		deletion, err := RowIn(ctx, tx, pgx.RowTo[*uuid.UUID], `
			SELECT erasure_id
			  FROM tenants
			 WHERE id = $1
			   FOR NO KEY UPDATE`, tenant)
		if err != nil {
			return begun, err
		}
		if deletion != nil {
			err = Exec(ctx, tx, setTenant, audit.Operator.String())
			if err == nil {
				begun, err = readErasure(ctx, tx, audit.Operator, *deletion)
			}
			return begun, err
		}
		if err := refuseHolds(ctx, tx, tenant); err != nil {
			return begun, err
		}
		return s.beginDeletion(ctx, tx, tenant)
	})
}

func (s *Store) beginDeletion(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (begun session.Erasure, err error) {
	of := erasing{
		tenant: audit.Operator, id: uuid.Must(uuid.NewV7()), kind: session.ErasureOfTenant, erased: &tenant,
	}
	err = Exec(ctx, tx, `
		UPDATE tenants
		   SET suspended_at = CASE WHEN suspended = 'all' THEN suspended_at ELSE now() END,
		       suspended = 'all', erasure_id = $2
		 WHERE id = $1`, tenant, of.id)
	if err == nil {
		err = Exec(ctx, tx, setTenant, of.tenant.String())
	}
	if err == nil {
		err = s.beginErasure(ctx, tx, of)
	}
	if err == nil {
		err = AddTask(ctx, tx, of.tenant, TaskErasure)
	}
	if err == nil {
		begun, err = readErasure(ctx, tx, of.tenant, of.id)
	}
	if err != nil {
		return begun, err
	}
	return begun, RecordOperator(ctx, tx, audit.TenantDelete, audit.Tenant, tenant.String(), about{"erasure": of.id})
}

// A tenantHold is a legal hold on a tenant, or on one of its sessions.
type tenantHold struct {
	session string // "" for the tenant
	session.Hold
}

// holdOfTenant returns a hold that keeps a tenant, first its own, and nil if there is none.
func holdOfTenant(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (*tenantHold, error) {
	found, err := RowIn(ctx, tx, func(row pgx.CollectableRow) (h tenantHold, err error) {
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
	if err := Exec(ctx, tx, setTenant, e.ErasedTenant.String()); err != nil {
		return err
	}
	e.TotalSessions, e.Held = new(e.Sessions), []string{}
	if e.State == session.ErasureDone { // a tenant that has the id now is another
		return nil
	}
	left, err := RowIn(ctx, tx, pgx.RowTo[int64], `
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

// eraseOfTenant erases one session of a tenant that is deleted; ErrTenantHeld, or ErrHeld for a hold that came since.
func (s *Store) eraseOfTenant(ctx context.Context, w ErasureWork, key session.Key) error {
	err := s.underFamilyLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		if err := refuseHolds(ctx, tx, key.Tenant); err != nil {
			return err
		}
		id, err := RowIn(ctx, tx, pgx.RowTo[string], `
			SELECT id
			  FROM sessions
			 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
		if err != nil {
			return err
		}
		return s.eraseFor(ctx, tx, w.erasing(), row, id)
	})
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// TenantAtRest reports whether no session of a tenant that is deleted is left, and no job of it runs.
func (s *Store) TenantAtRest(ctx context.Context, w ErasureWork) (bool, error) {
	return ReadTx(ctx, s.Seeing(AllSessions), w.Of(), func(tx pgx.Tx) (bool, error) {
		left, err := RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (SELECT FROM sessions WHERE tenant_id = $1)`, w.Of())
		if err != nil || left {
			return false, err
		}
		runs, err := queue.RunsForTenant(ctx, tx, w.Of())
		return !runs, err
	})
}

// CountObjects counts objects of a tenant that were erased.
func (s *Store) CountObjects(ctx context.Context, w ErasureWork, objects int) error {
	return s.InTenant(ctx, w.Tenant, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			UPDATE erasures
			   SET objects = objects + $3
			 WHERE tenant_id = $1 AND id = $2 AND state <> 'done'`, w.Tenant, w.ID, objects)
	})
}

// EraseRows deletes what a tenant has beside its sessions, at most about limit rows, and returns how many;
// ErrTenantHeld.
func (s *Store) EraseRows(ctx context.Context, w ErasureWork, limit int) (rows int, err error) {
	err = s.Seeing(AllSessions).InTenant(ctx, w.Of(), func(tx pgx.Tx) error {
		err := refuseHolds(ctx, tx, w.Of())
		if err != nil {
			return err
		}
		rows, err = eraseRows(ctx, tx, w.Of(), limit)
		return err
	})
	return rows, err
}

func eraseRows(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, limit int) (rows int, err error) {
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

// FinishTenant deletes the row of a tenant, its keys and its audit trail, and ends the erasure with its receipt.
//
// Errors: ErrUnfinished if there is anything left, or a job of the tenant runs; ErrHeld, ErrNotFound, ErrEnded.
func (s *Store) FinishTenant(ctx context.Context, w ErasureWork, kept time.Duration) error {
	return s.Seeing(AllSessions).InTenant(ctx, w.Tenant, func(tx pgx.Tx) error {
		r, err := countedReceipt(ctx, tx, w)
		if err != nil {
			return err
		}
		r.Tenant = w.Of()
		if err := Exec(ctx, tx, setTenant, w.Of().String()); err != nil {
			return err
		}
		if r.Ended, err = endTenant(ctx, tx, w); err != nil {
			return err
		}
		if err := Exec(ctx, tx, setTenant, w.Tenant.String()); err != nil {
			return err
		}
		if err := recordEnd(ctx, tx, w, r.Ended); err != nil {
			return err
		}
		if r.Audit, err = headOf(ctx, tx, w.Tenant); err != nil {
			return err
		}
		return endErasure(ctx, tx, w, r, kept)
	})
}

// endTenant deletes the rest of a tenant, in a transaction that sees it, and returns the end of its audit trail; nil if
// it had none.
func endTenant(ctx context.Context, tx pgx.Tx, w ErasureWork) (*session.TrailHead, error) {
	tenant := w.Of()
	rows, err := eraseRows(ctx, tx, tenant, lastRows)
	if err != nil {
		return nil, err
	}
	forgotten, err := queue.ForgetTenant(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	if rows >= lastRows || !forgotten {
		return nil, ErrUnfinished
	}
	var ended *session.TrailHead
	head, err := headOf(ctx, tx, tenant)
	switch {
	case err == nil:
		ended = &head
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, err
	}
	return ended, unfinished(heldError(Exec(ctx, tx, `SELECT end_tenant($1, $2)`, tenant, w.ID)))
}

// unfinished returns ErrUnfinished for the database's error that something still refers to the tenant.
func unfinished(err error) error {
	if hasCode(err, "23503") { // foreign_key_violation
		return ErrUnfinished
	}
	return err
}

// recordEnd records in the operators' trail that a tenant is gone, of which it forgets the name.
func recordEnd(ctx context.Context, tx pgx.Tx, w ErasureWork, ended *session.TrailHead) error {
	blanked, err := blankedBy(ctx, tx, `SELECT * FROM audit_blank_tenant($1)`, w.Of())
	if err != nil {
		return err
	}
	detail := about{"tenant": w.Of(), "ended": ended}
	if blanked.Rows > 0 {
		detail["blanked_from"], detail["blanked"] = blanked.First, blanked.Rows
	}
	return record(ctx, tx, w.Tenant, auditEntry{
		action: audit.ErasureFinish, object: audit.Erasure, id: w.ID.String(), detail: detail,
	})
}

// RequeueErasures inserts the jobs of erasures of a tenant, or of operators, that have lost theirs. It returns how
// many.
func (s *Store) RequeueErasures(ctx context.Context, tenant uuid.UUID) (lost int, err error) {
	sql := `
		SELECT id
		  FROM erasures
		 WHERE tenant_id = $1 AND state <> 'done'`
	return EachOf(ctx, s, tenant, sql, func(id uuid.UUID) (int, error) {
		return InTx(ctx, s, tenant, func(tx pgx.Tx) (int, error) {
			_, inserted, err := s.queue.Insert(ctx, tx, queue.ErasureArgs{Tenant: tenant, Erasure: id}, time.Time{})
			if err != nil || !inserted {
				return 0, err
			}
			return 1, nil
		})
	})
}
