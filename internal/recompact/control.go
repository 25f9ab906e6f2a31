package recompact

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
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

// Control does to a recompaction what is asked.
//
// Errors: ErrNotFound, ErrIdempotencyReused.
func (s store) Control(
	ctx context.Context, tenant, id uuid.UUID, what Control, key *session.Idempotency,
) (Stored, bool, error) {
	return postgres.Once(ctx, s.Store, tenant, key, func(tx pgx.Tx) (Stored, uuid.UUID, error) {
		changed, err := s.control(ctx, tx, tenant, id, what)
		if err != nil {
			return Stored{}, uuid.Nil, err
		}
		found, err := readOne(ctx, tx, tenant, id)
		if err != nil || !changed {
			return found, id, err
		}
		return found, id, record(ctx, tx, tenant, controls[what], id, nil)
	})
}

// control does to a recompaction what is asked, and reports whether that has changed it.
func (s store) control(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, what Control) (bool, error) {
	c, err := lock(ctx, tx, tenant, id)
	if err != nil {
		return false, err
	}
	goesOn := !c.State.Ended() && c.State != Cancelling
	switch {
	case what == RollBack && !c.RollingBack:
		if err := noteRollback(ctx, tx, &c); err != nil {
			return false, err
		}
		if !c.State.Ended() {
			c.State = Cancelling
		}
	case what == Cancel && goesOn:
		c.State = Cancelling
	case what == Pause && goesOn && !c.Paused, what == Resume && goesOn && c.Paused:
		if err := notePause(ctx, tx, &c, what == Pause); err != nil {
			return false, err
		}
	default:
		return false, nil
	}
	return true, s.advance(ctx, tx, c)
}

func notePause(ctx context.Context, tx pgx.Tx, c *locked, paused bool) error {
	c.Paused = paused
	return postgres.Exec(ctx, tx, `
		UPDATE recompactions
		   SET paused_at = CASE WHEN $3 THEN now() END
		 WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID, paused)
}

// noteRollback writes down that a recompaction is rolled back, and what the sweep looks after then.
func noteRollback(ctx context.Context, tx pgx.Tx, c *locked) error {
	c.RollingBack = true
	err := postgres.Exec(ctx, tx, `
		UPDATE recompactions
		   SET rollback_at = now()
		 WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID)
	return errors.Join(err, postgres.AddTask(ctx, tx, c.TenantID, task))
}
