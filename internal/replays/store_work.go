package replays

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

var (
	//go:embed next.sql
	nextSQL string
	//go:embed log.sql
	logText string
	//go:embed sample.sql
	sampleText string

	logSQL    = strings.ReplaceAll(logText, "{pinned}", postgres.PinnedElsewhere)
	sampleSQL = postgres.Filtered(sampleText)
)

// Begin returns a replay that a worker has to continue. The first time it takes the sample: sessions whose log
// reaches this share of the smallest window, so that there is something to measure.
//
// Errors: ErrNotFound, ErrEnded.
func (s store) Begin(ctx context.Context, tenant, id uuid.UUID, share float64) (Stored, error) {
	return postgres.InTx(ctx, s.Seeing(postgres.WithCold), tenant, func(tx pgx.Tx) (r Stored, err error) {
		if err := lock(ctx, tx, tenant, id); err != nil {
			return r, err
		}
		if r, err = postgres.RowIn(ctx, tx, scanStored, readSQL, tenant, id); err != nil {
			return r, err
		}
		switch {
		case r.State.Ended():
			return r, session.ErrEnded
		case r.State != Queued:
			return r, nil
		}
		if err := takeSample(ctx, tx, tenant, r, share); err != nil {
			return r, err
		}
		return postgres.RowIn(ctx, tx, scanStored, readSQL, tenant, id)
	})
}

func lock(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) error {
	return postgres.Exec(ctx, tx, `
		SELECT
		  FROM replays
		 WHERE tenant_id = $1 AND id = $2
		   FOR NO KEY UPDATE`, tenant, id)
}

func takeSample(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r Stored, share float64) error {
	sql, args, err := sampleSQL.In(ctx, tx, tenant, r.Filter)
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
	if err := postgres.Exec(ctx, tx, sql, args); err != nil {
		return fmt.Errorf("sample of replay %s: %w", r.ID, err)
	}
	return nil
}

// Step is the session of a replay that is measured next.
type Step struct {
	session.Key
	Replay   uuid.UUID
	LastSeq  int64 // of the log that is measured
	Window   int   // of the session, when the sample was taken, less its overhead
	Attempts int   // since its last outcome, this one included
	Measured []Pair
}

// Pair is a contender, by its number in the replay's list, in a window.
type Pair struct{ Contender, Window int }

// Next begins an attempt at the next session of a replay; ErrEnded if there is none, or the replay is not
// running.
func (s store) Next(ctx context.Context, tenant, id uuid.UUID) (step Step, err error) {
	var contenders, windows []int
	step = Step{Key: session.Key{Tenant: tenant}, Replay: id}
	scan := func(row pgx.CollectableRow) (none struct{}, err error) {
		return none, row.Scan(&step.Key.Key, &step.LastSeq, &step.Window, &step.Attempts, &contenders, &windows)
	}
	_, err = postgres.QueryRow(ctx, s.Store, tenant, scan, nextSQL, tenant, id)
	if errors.Is(err, session.ErrNotFound) {
		err = session.ErrEnded
	}
	for i := range contenders {
		step.Measured = append(step.Measured, Pair{contenders[i], windows[i]})
	}
	return step, err
}

// Log is the log of a session that is measured.
type Log struct {
	Format   session.Format
	Messages []session.Message // without the separate system prompt
	Skipped  string            // why it was not read, or ""
}

// Log reads the log of a session up to the last message that the sample saw, unless it has more messages or bytes
// than the replay allows; ErrNotFound if the session was erased.
func (s store) Log(ctx context.Context, step Step, r Stored) (log Log, err error) {
	found, err := postgres.ReadTx(ctx, s.Store, step.Tenant, func(tx pgx.Tx) (found postgres.Log, err error) {
		var messages, size, separate int64
		var foreign bool
		err = tx.QueryRow(ctx, logSQL, step.Tenant, step.Key.Key, step.LastSeq).
			Scan(&log.Format, &separate, &messages, &size, &foreign)
		if err != nil {
			return found, postgres.NotFound(err)
		}
		switch {
		case messages > r.MaxMessages:
			log.Skipped = SkippedMessages
		case size > r.MaxBytes:
			log.Skipped = SkippedBytes
		case foreign:
			log.Skipped = SkippedFormats
		default:
			found, err = postgres.ReadLog(ctx, tx, step.Key, `
				SELECT seq, tokens, body, created_at, digest
				  FROM messages
				 WHERE tenant_id = $1 AND session_key = $2 AND seq > $3 AND seq <= $4 AND removed_at IS NULL
				 ORDER BY seq`, step.Tenant, step.Key.Key, separate, step.LastSeq)
		}
		return found, err
	})
	if err != nil {
		return log, err
	}
	log.Messages, err = found.Complete(ctx, s.Store)
	return log, err
}

// PutOutcome stores what was measured of a session under one contender in one window, once. next is the contender that
// is measured then.
//
// Errors: ErrEnded if the replay is not running any more, ErrNotFound if the session was erased.
func (s store) PutOutcome(ctx context.Context, step Step, pair Pair, outcome json.RawMessage, next string) error {
	return s.InTenant(ctx, step.Tenant, func(tx pgx.Tx) error {
		err := postgres.ExecOne(ctx, tx, session.ErrEnded, `
			UPDATE replays
			   SET contender = $3
			 WHERE tenant_id = $1 AND id = $2 AND state = 'running'`, step.Tenant, step.Replay, next)
		if err != nil {
			return err
		}
		err = postgres.ExecOne(ctx, tx, session.ErrNotFound, `
			UPDATE replay_sessions
			   SET attempts = 0
			 WHERE tenant_id = $1 AND replay_id = $2 AND session_key = $3`, step.Tenant, step.Replay, step.Key.Key)
		if err != nil {
			return err
		}
		return postgres.Exec(ctx, tx, `
			INSERT INTO replay_outcomes (tenant_id, replay_id, session_key, contender, window_tokens, outcome)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT DO NOTHING`, step.Tenant, step.Replay, step.Key.Key, pair.Contender, pair.Window, outcome)
	})
}

// EndSession records that a session was measured, skipped or failed, and why. It does nothing to one that has
// ended or was erased.
func (s store) EndSession(ctx context.Context, step Step, state, reason string) error {
	return s.InTenant(ctx, step.Tenant, func(tx pgx.Tx) error {
		return postgres.Exec(ctx, tx, `
			UPDATE replay_sessions
			   SET state = $4, reason = nullif($5, ''), finished_at = clock_timestamp()
			 WHERE tenant_id = $1 AND replay_id = $2 AND session_key = $3 AND finished_at IS NULL`,
			step.Tenant, step.Replay, step.Key.Key, state, postgres.Text(reason))
	})
}

// Continue completes a job of a replay and inserts the next one behind those of other tenants.
func (s store) Continue(ctx context.Context, tenant, id uuid.UUID, job int64) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		if err := s.Queue().Complete(ctx, tx, job); err != nil {
			return err
		}
		return s.insertJob(ctx, tx, tenant, id)
	})
}

// OutcomesOf reads what a replay has measured, in the order of its sample. It leaves out sessions that were not
// measured under all contenders: the others would be compared over different sessions.
func (s store) OutcomesOf(ctx context.Context, tenant, id uuid.UUID) ([]json.RawMessage, error) {
	return postgres.QueryRows(ctx, s.Store, tenant, pgx.RowTo[json.RawMessage], `
		SELECT o.outcome
		  FROM replay_outcomes o
		  JOIN replay_sessions l ON l.tenant_id = $1 AND l.replay_id = $2 AND l.session_key = o.session_key
		 WHERE o.tenant_id = $1 AND o.replay_id = $2 AND l.state = 'measured'
		 ORDER BY l.place, o.contender, o.window_tokens`, tenant, id)
}

// End ends a replay with its report, unless it has ended, and completes its job.
func (s store) End(ctx context.Context, tenant, id uuid.UUID, report json.RawMessage, job int64) error {
	return s.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		err := postgres.Exec(ctx, tx, `
			UPDATE replays r
			   SET state = CASE WHEN state = 'cancelling' THEN 'cancelled' ELSE 'done' END,
			       report = $3, contender = NULL, finished_at = now(), progress = `+progressSQL+`
			 WHERE tenant_id = $1 AND id = $2 AND state IN ('running', 'cancelling')`, tenant, id, report)
		if err != nil {
			return err
		}
		return s.Queue().Complete(ctx, tx, job)
	})
}
