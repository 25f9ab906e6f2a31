package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/session"
)

// standIn reads the newest whole view before that of the newest checkpoint, which is damaged: one that begins with a
// checkpoint that is kept or, if none is whole, the log. It asks for a compaction from the log, which makes a new
// checkpoint.
//
// Errors: *session.DamagedError if nothing is whole.
func (s *Store) standIn(ctx context.Context, at session.Address, damaged error, v *View) error {
	newest := v.Version
	CountDamage(damaged)
	asked := s.askToHeal(ctx, at, newest)
	older, err := QueryRows(ctx, s, at.Tenant, pgx.RowTo[int], wholeCheckpointsSQL,
		[16]byte(at.Tenant), [16]byte(newest.Key), newest.Checkpoint)
	if err != nil {
		return err
	}
	for _, n := range append(older, 0) {
		var found View
		if found, err = s.OlderView(ctx, at, ViewFrom(n), ViewRead{Largest: v.args[largestArg].(int64)}); err == nil {
			*v = found
			v.Damage = errors.Join(damaged, asked)
			return nil
		}
	}
	if errors.Is(err, session.ErrLogTooLarge) {
		return damaged
	}
	return err
}

// wholeCheckpointsSQL finds the checkpoints of a session before $3 that are kept and whole, newest first.
var wholeCheckpointsSQL = `
	SELECT c.n
	  FROM checkpoints c
	 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.n < $3
	   AND c.body IS NOT NULL AND NOT c.forgotten AND ` + wholeSQL(`c`) + `
	 ORDER BY c.n DESC`

// causeDamage is the cause of a run that makes a new checkpoint because the newest is damaged.
const causeDamage = "damage"

// rememberedDamages bounds Store.asked.
const rememberedDamages = 1024

// checkpointID names a checkpoint of any session.
type checkpointID struct {
	session uuid.UUID
	n       int
}

// askToHeal asks for a compaction from the log because the newest checkpoint is damaged, once for each checkpoint. It
// waits neither for that nor for the session's lock: if another has it, the next read asks.
func (s *Store) askToHeal(ctx context.Context, at session.Address, newest Version) error {
	id := checkpointID{newest.Key, newest.Checkpoint}
	if s.asked.Contains(id) {
		return nil
	}
	key := session.Key{Tenant: at.Tenant, Key: newest.Key}
	return s.InTenant(ctx, at.Tenant, func(tx pgx.Tx) error {
		open, err := RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT checkpoint_n = $3 AND damaged_n <> $3
			  FROM sessions
			 WHERE tenant_id = $1 AND key = $2
			   FOR UPDATE SKIP LOCKED`, key.Tenant, key.Key, newest.Checkpoint)
		if errors.Is(err, session.ErrNotFound) {
			return nil
		}
		if err == nil && open {
			err = s.heal(ctx, tx, key, newest.Checkpoint)
		}
		if err == nil {
			s.asked.Add(id, struct{}{})
		}
		return err
	})
}

func (s *Store) heal(ctx context.Context, tx pgx.Tx, key session.Key, n int) error {
	err := Exec(ctx, tx, `
		UPDATE sessions
		   SET damaged_n = $3
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key, n)
	if err != nil {
		return err
	}
	_, _, err = s.enqueue(ctx, tx, key, causeDamage, time.Time{}, true)
	return err
}

// GoBack ends a run with cause damage, completes its job, and makes a copy of the newest checkpoint that is whole the
// session's newest. If there is none, the session goes back to its log with toLog; without it nothing is done, and back
// is false.
//
// Errors: ErrNotFound, ErrLogTooLarge.
func (s *Store) GoBack(
	ctx context.Context, key session.Key, run uuid.UUID, job int64, reason string, toLog bool,
) (back bool, err error) {
	err = s.underLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		back = false
		ended, err := replaceDamaged(ctx, tx, row, reason, toLog)
		if errors.Is(err, session.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		back, ended.ID = true, run
		if err := s.queue.Complete(ctx, tx, job); err != nil {
			return err
		}
		if err := s.clearFailures(ctx, tx, key, job); err != nil {
			return err
		}
		if err := finishRun(ctx, tx, key, ended); err != nil {
			return err
		}
		if err := rearm(ctx, tx, row, due.Floor{}); err != nil {
			return err
		}
		return s.followUp(ctx, tx, key)
	})
	return back, err
}

// replaceDamaged does what GoBack does to the checkpoints, and returns how the run ends; ErrNotFound if there is
// nothing to go back to.
func replaceDamaged(ctx context.Context, tx pgx.Tx, row lockedSession, reason string, toLog bool) (
	ended session.Run, err error,
) {
	whole, err := RowIn(ctx, tx, pgx.RowTo[bool], newestIsWholeSQL, row.Tenant, row.Key.Key)
	if err != nil || whole {
		return session.Run{State: session.RunUnchanged, Reason: "the newest checkpoint is whole"}, err
	}
	made, err := copyWhole(ctx, tx, row)
	if errors.Is(err, session.ErrNotFound) && toLog {
		made, err = blankCheckpoint(ctx, tx, row)
	}
	if err != nil {
		return ended, err
	}
	_, err = rollBack(ctx, tx, row, made, reason)
	return session.Run{State: session.RunDone, Reason: reason, Checkpoint: &made.N, Through: &made.Through}, err
}

var newestIsWholeSQL = `
	SELECT s.checkpoint_n = 0 OR EXISTS (
	       SELECT
	         FROM checkpoints c
	        WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.n = s.checkpoint_n AND c.body IS NOT NULL
	          AND c.through_seq = s.through_seq AND c.body_size = s.checkpoint_size AND ` + wholeSQL(`c`) + `)
	  FROM sessions s
	 WHERE s.tenant_id = $1 AND s.key = $2`

// missingCheckpoint returns what is wrong with a checkpoint that is not there, 0 for the newest: ErrNotFound, or a
// *session.DamagedError if the session has had it.
func missingCheckpoint(ctx context.Context, tx pgx.Tx, key session.Key, n int) error {
	newest, err := RowIn(ctx, tx, pgx.RowTo[int], `
		SELECT checkpoint_n
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
	switch {
	case err != nil:
		return err
	case newest == 0, n > newest:
		return session.ErrNotFound
	}
	return session.DamagedCheckpoint(cmp.Or(n, newest), errNoCheckpoint)
}
