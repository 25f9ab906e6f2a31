package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// Control is what is asked of a recompaction that was begun.
type Control string

// The controls. One that changes nothing is no error.
const (
	Pause    Control = "pause"    // lets running sessions finish, and starts no others until Resume
	Resume   Control = "resume"   // ends a pause
	Cancel   Control = "cancel"   // lets running sessions finish, and starts no others
	RollBack Control = "rollback" // cancels it and, when it has ended, rolls its sessions back
)

// controls say which action each is in the audit trail.
var controls = map[Control]audit.Action{
	Pause: audit.RecompactionPause, Resume: audit.RecompactionResume, Cancel: audit.RecompactionCancel,
	RollBack: audit.RecompactionRollback,
}

// ControlRecompaction does to a recompaction what is asked.
//
// Errors: ErrNotFound, ErrIdempotencyReused.
func (s *Store) ControlRecompaction(
	ctx context.Context, tenant, id uuid.UUID, what Control, key *session.Idempotency,
) (session.Recompaction, bool, error) {
	return Once(ctx, s, tenant, key, func(tx pgx.Tx) (session.Recompaction, uuid.UUID, error) {
		changed, err := s.control(ctx, tx, tenant, id, what)
		if err != nil {
			return session.Recompaction{}, uuid.Nil, err
		}
		found, err := readRecompaction(ctx, tx, tenant, id)
		if err != nil || !changed {
			return found, id, err
		}
		return found, id, record(ctx, tx, tenant, auditEntry{
			action: controls[what], object: audit.Recompaction, id: id.String(),
		})
	})
}

// control does to a recompaction what is asked, and reports whether that has changed it.
func (s *Store) control(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, what Control) (bool, error) {
	c, err := lockRecompaction(ctx, tx, tenant, id)
	if err != nil {
		return false, err
	}
	goesOn := !c.State.Ended() && c.State != session.RecompactionCancelling
	switch {
	case what == RollBack && !c.RollingBack:
		if err := noteRollback(ctx, tx, &c); err != nil {
			return false, err
		}
		if !c.State.Ended() {
			c.State = session.RecompactionCancelling
		}
	case what == Cancel && goesOn:
		c.State = session.RecompactionCancelling
	case what == Pause && goesOn && !c.Paused, what == Resume && goesOn && c.Paused:
		if err := notePause(ctx, tx, &c, what == Pause); err != nil {
			return false, err
		}
	default:
		return false, nil
	}
	return true, s.advance(ctx, tx, c)
}

func notePause(ctx context.Context, tx pgx.Tx, c *lockedRecompaction, paused bool) error {
	c.Paused = paused
	return Exec(ctx, tx, `
		UPDATE recompactions
		   SET paused_at = CASE WHEN $3 THEN now() END
		 WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID, paused)
}

// noteRollback writes down that a recompaction is rolled back, and what the sweep looks after then.
func noteRollback(ctx context.Context, tx pgx.Tx, c *lockedRecompaction) error {
	c.RollingBack = true
	err := Exec(ctx, tx, `
		UPDATE recompactions
		   SET rollback_at = now()
		 WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID)
	return errors.Join(err, AddChore(ctx, tx, c.TenantID, ChoreRecompaction))
}
