package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/session"
)

// Remove removes a message from every view. Its row stays in the log as it is, with the time and with the seq that the
// removal takes, which no message ever has. A checkpoint that covers the message loses its body, and the session goes
// back to the newest one that does not cover it, or to its log, until it is compacted again.
//
// Errors: ErrNotFound, also for a message that was removed already; ErrTooManyMessages, ErrLogTooLarge,
// ErrIdempotencyReused.
func (s *Store) Remove(ctx context.Context, at session.Address, seq int64, id *session.Idempotency) (
	session.Session, bool, error,
) {
	return onceInSession(ctx, s, at, id, func(tx pgx.Tx, row lockedSession) (session.Session, error) {
		if err := s.remove(ctx, tx, row, seq); err != nil {
			return session.Session{}, fmt.Errorf("message %d: %w", seq, err)
		}
		left, err := readSession(ctx, tx, at)
		if err != nil {
			return left, err
		}
		return left, recordSession(ctx, tx, at, audit.MessageRemove, about{"seq": seq})
	})
}

var removeSQL = statement("remove_message")

func (s *Store) remove(ctx context.Context, tx pgx.Tx, row lockedSession, seq int64) error {
	if row.lastSeq >= session.MaxSessionMessages {
		return session.ErrTooManyMessages
	}
	covered, err := RowIn(ctx, tx, pgx.RowTo[bool], removeSQL, pgx.NamedArgs{
		"tenant": row.Tenant, "session": row.Key.Key, "seq": seq, "removed_seq": row.lastSeq + 1,
	})
	if err != nil {
		return err
	}
	if covered {
		reason := fmt.Sprintf("message %d was removed", seq)
		if err := s.takeBack(ctx, tx, row, seq, seq, reason); err != nil {
			return err
		}
	}
	return s.compactIfDue(ctx, tx, row.Key, causes[due.Trigger])
}

// takeBack takes the session back to the time before a compaction that covers a message from seq first through last,
// which are removed. It may be due afterwards. The last seq of row is the one before that of the removal, to which the
// checkpoint belongs that is made here.
func (s *Store) takeBack(
	ctx context.Context, tx pgx.Tx, row lockedSession, first, last int64, reason string,
) error {
	if err := forgetCovering(ctx, tx, row.Key, first, last); err != nil {
		return err
	}
	made, err := goBack(ctx, tx, row, first)
	if err != nil {
		return err
	}
	if _, err := rollBack(ctx, tx, row, made, reason); err != nil {
		return err
	}
	return rearm(ctx, tx, row, due.Floor{})
}

// goBack deletes the bodies of the checkpoints that cover seq, so that none of them can be restored, and copies the
// newest whole one that does not cover it to a new checkpoint. If none is kept, the new one covers nothing.
func goBack(ctx context.Context, tx pgx.Tx, row lockedSession, seq int64) (made session.CheckpointRecord, err error) {
	err = Exec(ctx, tx, `
		UPDATE checkpoints
		   SET `+prunedCheckpoint+`
		 WHERE tenant_id = $1 AND session_key = $2 AND through_seq >= $3 AND body IS NOT NULL`,
		row.Tenant, row.Key.Key, seq)
	if err != nil {
		return made, err
	}
	made, err = copyWhole(ctx, tx, row)
	if errors.Is(err, session.ErrNotFound) {
		return blankCheckpoint(ctx, tx, row)
	}
	return made, err
}

// copyWhole copies the newest whole checkpoint; ErrNotFound if there is none.
func copyWhole(ctx context.Context, tx pgx.Tx, row lockedSession) (made session.CheckpointRecord, err error) {
	kept, err := RowIn(ctx, tx, pgx.RowTo[int], wholeCheckpointsSQL+`
		 LIMIT 1`, row.Tenant, row.Key.Key, row.checkpoint+1)
	if err != nil {
		return made, err
	}
	return copyCheckpoint(ctx, tx, row, kept)
}

// noEngine is the engine version of a checkpoint that no engine made. The next compaction starts from the log.
const noEngine = 0

// blankCheckpoint inserts a checkpoint of no messages after the newest one, if the log fits into memory. The number of
// a checkpoint is never used again, so the session cannot go back to having none.
func blankCheckpoint(ctx context.Context, tx pgx.Tx, row lockedSession) (session.CheckpointRecord, error) {
	if err := fits(ctx, tx, row.Key); err != nil {
		return session.CheckpointRecord{}, err
	}
	made, err := RowIn(ctx, tx, scanRecord, `
		INSERT INTO checkpoints AS c (tenant_id, session_key, n, base_n, through_seq, tokens, body, body_size, state,
		                              units, manifest, policy, engine_version, run_id, made_after)
		SELECT $1, $2, $3, 0, 0, 0, '', 0, '', '[]',
		       '[]', p.document, $4, $5, $6
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
		 WHERE s.tenant_id = $1 AND s.key = $2
		RETURNING `+recordColumns,
		row.Tenant, row.Key.Key, row.checkpoint+1, noEngine, uuid.Must(uuid.NewV7()), row.lastSeq)
	if err != nil {
		return made, err
	}
	return made, Exec(ctx, tx, sealSQL, row.Tenant, row.Key.Key, made.N)
}

// refuseRemoved returns ErrStale if a message that the checkpoint covers was removed after the compaction was planned.
// It looks at the tail only: a removal from what was covered before has made another checkpoint the newest.
func refuseRemoved(ctx context.Context, tx pgx.Tx, key session.Key, through, planned int64) error {
	var removed bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (
		       SELECT
		         FROM messages
		        WHERE tenant_id = $1 AND session_key = $2
		          AND seq > (SELECT through_seq FROM sessions WHERE tenant_id = $1 AND key = $2) AND seq <= $3
		          AND removed_seq > $4)`, key.Tenant, key.Key, through, planned).Scan(&removed)
	if err == nil && removed {
		err = session.ErrStale
	}
	return err
}
