package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// The long statements on the sessions of replays.
var (
	sampleReplaySQL      = filtered("sample_replay")
	nextInReplaySQL      = statement("next_in_replay")
	replayLogSQL         = statement("replay_log", "{pinned}", pinnedElsewhere)
	lockReplaysSQL       = statement("lock_replays")
	removeFromReplaysSQL = statement("remove_from_replays")
)

// BeginReplay returns a replay that a worker has to continue. The first time it takes the sample: sessions whose log
// reaches this share of the smallest window, so that there is something to measure.
//
// Errors: ErrNotFound, ErrEnded.
func (s *Store) BeginReplay(ctx context.Context, tenant, id uuid.UUID, share float64) (session.Replay, error) {
	return InTx(ctx, s.seeing(withCold), tenant, func(tx pgx.Tx) (r session.Replay, err error) {
		if err := lockReplay(ctx, tx, tenant, id); err != nil {
			return r, err
		}
		if r, err = RowIn(ctx, tx, scanReplay, readReplaySQL, tenant, id); err != nil {
			return r, err
		}
		switch {
		case r.State.Ended():
			return r, session.ErrEnded
		case r.State != session.ReplayQueued:
			return r, nil
		}
		if err := takeSample(ctx, tx, tenant, r, share); err != nil {
			return r, err
		}
		return RowIn(ctx, tx, scanReplay, readReplaySQL, tenant, id)
	})
}

func lockReplay(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	return Exec(ctx, tx, `
		SELECT
		  FROM replays
		 WHERE tenant_id = $1 AND id = $2
		   FOR NO KEY UPDATE`, tenant, id)
}

func takeSample(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r session.Replay, share float64) error {
	sql, args, err := filteredIn(ctx, tx, sampleReplaySQL, tenant, r.Filter)
	if err != nil {
		return err
	}
	args["id"] = r.ID
	args["created_at"] = r.CreatedAt
	args["sample"] = r.Sample
	args["seed"] = r.Seed
	args["share"] = share
	args["smallest"] = nil
	if len(r.Windows) > 0 {
		args["smallest"] = slices.Min(r.Windows)
	}
	if err := Exec(ctx, tx, sql, args); err != nil {
		return fmt.Errorf("sample of replay %s: %w", r.ID, err)
	}
	return nil
}

// ReplayStep is the session of a replay that is measured next.
type ReplayStep struct {
	session.Key
	Replay   uuid.UUID
	LastSeq  int64 // of the log that is measured
	Window   int   // of the session, when the sample was taken, less its overhead
	Attempts int   // since its last outcome, this one included
	Measured []ReplayPair
}

// ReplayPair is a contender, by its place in the replay's list, in a window.
type ReplayPair struct{ Contender, Window int }

// NextInReplay begins an attempt at the next session of a replay; ErrEnded if there is none, or the replay is not
// running.
func (s *Store) NextInReplay(ctx context.Context, tenant, id uuid.UUID) (step ReplayStep, err error) {
	var contenders, windows []int
	step = ReplayStep{Key: session.Key{Tenant: tenant}, Replay: id}
	err = s.query(ctx, tenant, nextInReplaySQL, []any{tenant, id},
		one(&step.Key.Key, &step.LastSeq, &step.Window, &step.Attempts, &contenders, &windows))
	if errors.Is(err, session.ErrNotFound) {
		err = session.ErrEnded
	}
	for i := range contenders {
		step.Measured = append(step.Measured, ReplayPair{contenders[i], windows[i]})
	}
	return step, err
}

// ReplayLog is the log of a session that is measured.
type ReplayLog struct {
	Format   session.Format
	Messages []ReplayMessage // without the separate system prompt
	Skipped  string          // why it was not read, or ""
}

// ReplayMessage is a message of a log that is measured.
type ReplayMessage struct {
	Seq       int64
	Tokens    int
	Body      []byte
	CreatedAt time.Time
	Digest    []byte // SHA-256 of Body; nil if it is not known
}

// ReplayLog reads the log of a session up to the last message that the sample saw, unless it has more messages or bytes
// than the replay allows; ErrNotFound if the session was erased.
func (s *Store) ReplayLog(ctx context.Context, step ReplayStep, r session.Replay) (log ReplayLog, err error) {
	var found logOf[ReplayMessage]
	err = s.inSnapshot(ctx, step.Tenant, func(tx pgx.Tx) error {
		var messages, size, separate int64
		var foreign bool
		err := tx.QueryRow(ctx, replayLogSQL, step.Tenant, step.Key.Key, step.LastSeq).
			Scan(&log.Format, &separate, &messages, &size, &foreign)
		if err != nil {
			return NotFound(err)
		}
		switch {
		case messages > r.MaxMessages:
			log.Skipped = session.SkippedMessages
		case size > r.MaxBytes:
			log.Skipped = session.SkippedBytes
		case foreign:
			log.Skipped = session.SkippedFormats
		default:
			found, err = readLog(ctx, tx, step.Key, ofReplayMessage, pgx.RowToStructByPos[ReplayMessage], `
				SELECT seq, tokens, body, created_at, digest
				  FROM messages
				 WHERE tenant_id = $1 AND session_key = $2 AND seq > $3 AND seq <= $4 AND removed_at IS NULL
				 ORDER BY seq`, step.Tenant, step.Key.Key, separate, step.LastSeq)
		}
		return err
	})
	if err != nil {
		return log, err
	}
	log.Messages, err = found.complete(ctx, s)
	return log, err
}

// PutOutcome stores what was measured of a session under one contender in one window, once. next is the contender that
// is measured then.
//
// Errors: ErrEnded if the replay is not running any more, ErrNotFound if the session was erased.
func (s *Store) PutOutcome(
	ctx context.Context, step ReplayStep, pair ReplayPair, outcome json.RawMessage, next string,
) error {
	return s.inTenant(ctx, step.Tenant, func(tx pgx.Tx) error {
		err := ExecOne(ctx, tx, session.ErrEnded, `
			UPDATE replays
			   SET contender = $3
			 WHERE tenant_id = $1 AND id = $2 AND state = 'running'`, step.Tenant, step.Replay, next)
		if err != nil {
			return err
		}
		err = ExecOne(ctx, tx, session.ErrNotFound, `
			UPDATE replay_sessions
			   SET attempts = 0
			 WHERE tenant_id = $1 AND replay_id = $2 AND session_key = $3`, step.Tenant, step.Replay, step.Key.Key)
		if err != nil {
			return err
		}
		return Exec(ctx, tx, `
			INSERT INTO replay_outcomes (tenant_id, replay_id, session_key, contender, window_tokens, outcome)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT DO NOTHING`, step.Tenant, step.Replay, step.Key.Key, pair.Contender, pair.Window, outcome)
	})
}

// EndReplaySession records that a session was measured, skipped or failed, and why. It does nothing to one that has
// ended or was erased.
func (s *Store) EndReplaySession(ctx context.Context, step ReplayStep, state, reason string) error {
	return s.inTenant(ctx, step.Tenant, func(tx pgx.Tx) error {
		return Exec(ctx, tx, `
			UPDATE replay_sessions
			   SET state = $4, reason = nullif($5, ''), finished_at = clock_timestamp()
			 WHERE tenant_id = $1 AND replay_id = $2 AND session_key = $3 AND finished_at IS NULL`,
			step.Tenant, step.Replay, step.Key.Key, state, Text(reason))
	})
}

// ContinueReplay completes a job of a replay and inserts the next one behind those of other tenants.
func (s *Store) ContinueReplay(ctx context.Context, tenant, id uuid.UUID, job int64) error {
	return s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		if err := s.queue.Complete(ctx, tx, job); err != nil {
			return err
		}
		return s.insertReplay(ctx, tx, tenant, id)
	})
}

// ReplayOutcomes reads what a replay has measured, in the order of its sample. It leaves out sessions that were not
// measured under all contenders: the others would be compared over different sessions.
func (s *Store) ReplayOutcomes(ctx context.Context, tenant, id uuid.UUID) ([]json.RawMessage, error) {
	return QueryRows(ctx, s, tenant, pgx.RowTo[json.RawMessage], `
		SELECT o.outcome
		  FROM replay_outcomes o
		  JOIN replay_sessions l ON l.tenant_id = $1 AND l.replay_id = $2 AND l.session_key = o.session_key
		 WHERE o.tenant_id = $1 AND o.replay_id = $2 AND l.state = 'measured'
		 ORDER BY l.place, o.contender, o.window_tokens`, tenant, id)
}

// EndReplay ends a replay with its report, unless it has ended, and completes its job.
func (s *Store) EndReplay(ctx context.Context, tenant, id uuid.UUID, report json.RawMessage, job int64) error {
	return s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		err := Exec(ctx, tx, `
			UPDATE replays r
			   SET state = CASE WHEN state = 'cancelling' THEN 'cancelled' ELSE 'done' END,
			       report = $3, contender = NULL, finished_at = now(), progress = `+progressSQL+`
			 WHERE tenant_id = $1 AND id = $2 AND state IN ('running', 'cancelling')`, tenant, id, report)
		if err != nil {
			return err
		}
		return s.queue.Complete(ctx, tx, job)
	})
}

// removeFromReplays removes a session that is being erased from its replays. It locks them first, as PutOutcome does.
func removeFromReplays(batch *pgx.Batch, key session.Key) {
	args := pgx.NamedArgs{"tenant": key.Tenant, "session": key.Key}
	batch.Queue(lockReplaysSQL, args)
	batch.Queue(`DELETE FROM replay_outcomes WHERE tenant_id = @tenant AND session_key = @session`, args)
	batch.Queue(removeFromReplaysSQL, args)
}
