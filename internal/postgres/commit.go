package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// KeptCheckpoints is how many of a session's newest checkpoints keep their bodies, besides the one that was restored
// last; older ones keep statistics and manifest.
const KeptCheckpoints = 10

// Checkpoint is a stored rendition.
type Checkpoint struct {
	N              int
	Through        int64
	Tokens         int64
	Body           []byte // zframe blocks
	Size           int    // of Body, decompressed
	State          []byte // zstd
	Units          json.RawMessage
	Manifest       json.RawMessage
	OpenCalls      []string
	ValidatorState []byte // what tells a reader whether the rendition is valid as it is, see wire.ValidatorState
	Policy         json.RawMessage
	EngineVersion  int
	Refs           []string // of results that it names and its base does not
	Forgotten      bool     // nothing may begin with it: see Rebuild
	FromLog        bool     // it has no base: its manifest lists everything that it does not show whole

	Damage error // of one that was read: nil if it is what was written
}

// Outcome is what a compaction commits.
type Outcome struct {
	Run        session.Run
	Base       int         // number of the checkpoint that was the newest when it was planned, 0 for none
	LastSeq    int64       // the last message of the view that it was planned on
	Checkpoint *Checkpoint // nil if there was nothing to do
	Saved      int64       // tokens by which the view shrinks

	Under      Conditions // by which it was planned
	FreedAfter int        // messages after which the policy protects much less; 0 if that is not known

	Part *Part // of a feature's work; nil for none

	Summaries *SummaryWork // nil if the session waits for no model
	Forgotten bool         // whether the base was, when the compaction was planned: see Rebuild
}

// Conditions are what a compaction is planned under. What one could not remove says nothing under others.
type Conditions struct {
	Policy   session.PolicyVersion
	Window   int  // tokens
	Overhead int  // tokens
	Lent     bool // the policy was not the session's own
}

// Part is a part of a feature's work that is the compaction of a session.
type Part struct {
	About map[string]any // what the event of the compaction says of that work
	Ended func(ctx context.Context, tx pgx.Tx, o Outcome) error
}

// ErrRunRequested reports that a run was requested to start now while it was about to be postponed.
var ErrRunRequested = errors.New("the run was requested to start now while it was planned")

// CommitCheckpoint ends a compaction in one transaction, in the order that keeps locks and promises: lock the session;
// return ErrStale unless its newest checkpoint is still the base and nothing that it covers was removed; write the
// checkpoint and the links to its results; write down the summaries that models are to write, with their jobs; complete
// the job; end the run; and insert the next job if appends made the session due meanwhile, or a model has answered. The
// next job must come after the completion, or it would be dropped as a duplicate.
//
// Errors: ErrNotFound, ErrStale, ErrRunRequested.
func (s *Store) CommitCheckpoint(ctx context.Context, key session.Key, o Outcome, job int64) error {
	return s.underLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		if row.checkpoint != o.Base {
			return session.ErrStale
		}
		if err := refuseForgotten(ctx, tx, key, o); err != nil {
			return err
		}
		if o.Run.State == session.RunPostponed {
			if err := refuseRequested(ctx, tx, key, o.Run); err != nil {
				return err
			}
		}
		if o.Checkpoint != nil {
			if err := s.addCheckpoint(ctx, tx, row, o); err != nil {
				return err
			}
		}
		if err := s.noteSummaries(ctx, tx, key, o.Newest(), o.Summaries); err != nil {
			return err
		}
		if err := rearmAfter(ctx, tx, row, o); err != nil {
			return err
		}
		if err := s.queue.Complete(ctx, tx, job); err != nil {
			return err
		}
		if err := s.clearFailures(ctx, tx, key, job); err != nil {
			return err
		}
		if o.Part != nil {
			if err := o.Part.Ended(ctx, tx, o); err != nil {
				return err
			}
		}
		// After the work that it is a part of, whose lock covers its runs.
		if err := finishRun(ctx, tx, key, o.Run); err != nil {
			return err
		}
		return s.followUp(ctx, tx, key)
	})
}

// addCheckpoint writes the checkpoint, tells of it, and asks for what follows it.
func (s *Store) addCheckpoint(ctx context.Context, tx pgx.Tx, row lockedSession, o Outcome) error {
	if err := insertCheckpoint(ctx, tx, row, o); err != nil {
		return err
	}
	if err := emitCompacted(ctx, tx, row.Key, o); err != nil {
		return err
	}
	done, err := packedAlready(ctx, tx, row.Key, o)
	if err != nil || done {
		return err
	}
	_, _, err = s.queue.Insert(ctx, tx, queue.OffloadArgs{Tenant: row.Tenant, Session: row.Key.Key}, time.Time{})
	return err
}

// Newest returns the number of the session's newest checkpoint once the outcome is committed.
func (o *Outcome) Newest() int {
	if o.Checkpoint != nil {
		return o.Base + 1
	}
	return o.Base
}

// refuseRequested returns ErrRunRequested if a run has another cause by now than it was started with.
func refuseRequested(ctx context.Context, tx pgx.Tx, key session.Key, run session.Run) error {
	var requested bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (
		       SELECT
		         FROM runs
		        WHERE tenant_id = $1 AND id = $2 AND cause <> $3 AND state IN ('queued', 'running'))`,
		key.Tenant, run.ID, run.Cause).Scan(&requested)
	if err == nil && requested {
		err = ErrRunRequested
	}
	return err
}

// insertCheckpointSQL writes a checkpoint with its digests, which are of what the database makes of the values.
var insertCheckpointSQL = `
	INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body, body_size, state, units,
	                         manifest, open_calls, policy, engine_version, run_id, validator_state, made_after,
	                         body_digest, state_digest)
	SELECT c.*, ` + BodyDigestSQL(`c`) + `, sha256(c.state)
	  FROM (SELECT $1::uuid, $2::uuid, $3::integer, $4::integer, $5::bigint AS through_seq, $6::bigint,
	               $7::bytea AS body, $8::integer AS body_size, $9::bytea AS state, $10::jsonb AS units, $11::jsonb,
	               $12::text[] AS open_calls, $13::json, $14::integer, $15::uuid, $16::bytea AS validator_state,
	               $17::bigint) c`

// insertCheckpoint writes the checkpoint and makes it the session's newest. It refuses one that names a result which is
// not there. (Nothing deletes a result but the deletion of its session.)
func insertCheckpoint(ctx context.Context, tx pgx.Tx, row lockedSession, o Outcome) error {
	c := o.Checkpoint
	if err := refuseRemoved(ctx, tx, row.Key, c.Through, o.LastSeq); err != nil {
		return err
	}
	tenant, key := row.Tenant, row.Key.Key
	base := o.Base
	if c.FromLog {
		base = 0
	}
	batch := &pgx.Batch{}
	batch.Queue(insertCheckpointSQL, tenant, key, o.Base+1, base, c.Through, c.Tokens, c.Body, c.Size, c.State, c.Units,
		c.Manifest, texts(c.OpenCalls), c.Policy, c.EngineVersion, o.Run.ID, c.ValidatorState, row.lastSeq)
	batch.Queue(`
		SELECT count(*)
		  FROM results
		 WHERE tenant_id = $1 AND session_key = $2 AND ref = ANY ($3::text[])`, tenant, key, c.Refs).
		QueryRow(func(found pgx.Row) error {
			var n int
			if err := found.Scan(&n); err != nil || n == len(c.Refs) {
				return err
			}
			return fmt.Errorf("the checkpoint names %d results, and %d are there", len(c.Refs), n)
		})
	batch.Queue(`
		UPDATE checkpoints
		   SET `+prunedCheckpoint+`
		 WHERE tenant_id = $1 AND session_key = $2
		   AND (n = $3 AND restored_from IS NULL OR n = $4 AND forgotten)`,
		tenant, key, o.Base+1-KeptCheckpoints, o.Base)
	batch.Queue(newestSQL, tenant, key, o.Base+1, c.Through, c.Size, c.Tokens, o.Under.Policy.Tenant)
	batch.Queue(shrunkSQL, tenant, key, row.contextTokens)
	return tx.SendBatch(ctx, batch).Close()
}

// texts returns ids that a client chose as an array that PostgreSQL can hold.
func texts(ids []string) []string {
	clean := make([]string, len(ids))
	for i, id := range ids {
		clean[i] = Text(id)
	}
	return clean
}

// rearmAfter arms the trigger of a session by the tokens that its compaction left. What was appended meanwhile does not
// count. There is no floor if the policy, the window or the log before it has changed meanwhile: more may be free now.
func rearmAfter(ctx context.Context, tx pgx.Tx, row lockedSession, o Outcome) error {
	later, err := RowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT coalesce(sum(coalesce(view_tokens, tokens)), 0)
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq > $3 AND removed_at IS NULL`,
		row.Tenant, row.Key.Key, o.LastSeq)
	if err != nil {
		return err
	}
	tokens := row.contextTokens + row.overhead - o.Saved - later
	switch {
	case o.Under != row.conditions() || o.LastSeq < row.gapSeq:
		return rearm(ctx, tx, row, due.Floor{})
	case o.Run.State == session.RunPostponed:
		return rearm(ctx, tx, row, row.rule.FloorAfterPostponed(tokens))
	}
	if o.Checkpoint != nil {
		row.rule.Bytes = int64(o.Checkpoint.Size)
	}
	floor := row.rule.FloorAfter(tokens)
	if o.FreedAfter > 0 {
		floor.Seq = o.LastSeq + int64(o.FreedAfter)
	}
	return rearm(ctx, tx, row, floor)
}

// rearm arms the trigger of a session that is not due now, and sets the floor from which it must grow.
func rearm(ctx context.Context, tx pgx.Tx, row lockedSession, floor due.Floor) error {
	return Exec(ctx, tx, `
		WITH done AS (
			DELETE FROM due_sessions
			 WHERE tenant_id = $1 AND session_key = $2
		)
		UPDATE sessions
		   SET armed_threshold = $3, idle_asked = false,
		       floor_tokens = greatest($4, 0), floor_hides = $5, floor_seq = $6, floor_version = $7, floor_engine = $8
		 WHERE tenant_id = $1 AND key = $2`,
		row.Tenant, row.Key.Key, due.Trigger, floor.Tokens, floor.Hides, floor.Seq, floor.Version, floor.Engine)
}

// MarkSuperseded ends a run that another one overtook, completes its job, and asks for the next compaction if the
// session is due.
func (s *Store) MarkSuperseded(ctx context.Context, key session.Key, run session.Run, job int64) error {
	return s.underLock(ctx, key, func(tx pgx.Tx, row lockedSession) error {
		if err := finishRun(ctx, tx, key, run); err != nil {
			return err
		}
		if err := s.queue.Complete(ctx, tx, job); err != nil {
			return err
		}
		if err := s.clearFailures(ctx, tx, key, job); err != nil {
			return err
		}
		if err := armTrigger(ctx, tx, key); err != nil {
			return err
		}
		if err := s.compactForgotten(ctx, tx, row); err != nil {
			return err
		}
		return s.followUp(ctx, tx, key)
	})
}
