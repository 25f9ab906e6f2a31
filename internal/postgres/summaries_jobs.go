package postgres

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// causeSummary is the cause of a run that takes in what a model has answered, or that it has failed.
const causeSummary = "summary"

// SummaryWork is what a compaction leaves to do about the summaries that models write.
type SummaryWork struct {
	Due     []session.DueSummary    // wanted, and not answered
	Waiting []session.SummaryDigest // for which the checkpoint waits: those of Due, and of its base
	Kept    []KeptSummary           // wanted, and taken in without a job
	Offered []session.SummaryID     // whose answer or failure the compaction has had
}

// KeptSummary is a summary of which the answers of all calls were kept.
type KeptSummary struct {
	ID          session.SummaryID
	First, Last int64
	Answer      session.SummaryAnswer
}

// noteSummaries writes down what a compaction leaves to do, and inserts the jobs that ask models. What nothing waits
// for any more has ended. n is the newest checkpoint.
func (s *Store) noteSummaries(ctx context.Context, tx pgx.Tx, key session.Key, n int, w *SummaryWork) error {
	if w == nil {
		return nil
	}
	if _, err := SupersedeSummaries(ctx, tx, key, w.Waiting); err != nil {
		return err
	}
	if err := noteOffered(ctx, tx, key, w.Offered); err != nil {
		return err
	}
	for i := range w.Kept {
		if err := insertKept(ctx, tx, key, n, &w.Kept[i]); err != nil {
			return err
		}
	}
	if _, err := InsertDue(ctx, tx, key, n, w.Due); err != nil || len(w.Waiting) == 0 {
		return err
	}
	return s.askForSummaries(ctx, tx, key, w.Waiting)
}

// askForSummaries inserts the jobs of summaries that are due, of those that have failed and are to be asked for again,
// and of those that had ended and that a restored checkpoint waits for. One that has its job keeps it.
func (s *Store) askForSummaries(
	ctx context.Context, tx pgx.Tx, key session.Key, waiting []session.SummaryDigest,
) error {
	digests := digestsOf(waiting)
	err := Exec(ctx, tx, `
		UPDATE summaries
		   SET state = 'due', attempts = 0, reason = NULL, ask_after = NULL, asked_at = NULL, finished_at = NULL
		 WHERE tenant_id = $1 AND session_key = $2 AND digest = ANY ($3)
		   AND request IS NOT NULL
		   AND (state = 'superseded' OR state = 'failed' AND (ask_after <= now()) IS NOT FALSE)`,
		key.Tenant, key.Key, digests)
	if err != nil {
		return err
	}
	due, err := RowsIn(ctx, tx, pgx.RowToStructByPos[struct {
		Model  string
		Digest []byte
	}], `
		SELECT model, digest
		  FROM summaries
		 WHERE tenant_id = $1 AND session_key = $2 AND digest = ANY ($3) AND state IN ('due', 'asking')`,
		key.Tenant, key.Key, digests)
	for i := range due {
		args := queue.SummariseArgs{
			Tenant: key.Tenant, Session: key.Key, Model: due[i].Model, Digest: hex.EncodeToString(due[i].Digest),
		}
		if _, _, err := s.queue.Insert(ctx, tx, args, time.Time{}); err != nil {
			return err
		}
	}
	return err
}

func digestsOf(list []session.SummaryDigest) [][]byte {
	digests := make([][]byte, len(list))
	for i := range list {
		digests[i] = list[i][:]
	}
	return digests
}

// noteOffered notes that a compaction has had answers and failures: no other one is asked for because of them.
func noteOffered(ctx context.Context, tx pgx.Tx, key session.Key, ids []session.SummaryID) error {
	if len(ids) == 0 {
		return nil
	}
	models, digests := make([]string, len(ids)), make([][]byte, len(ids))
	for i := range ids {
		models[i], digests[i] = ids[i].Model, ids[i].Digest[:]
	}
	return Exec(ctx, tx, `
		UPDATE summaries s
		   SET offered = true
		  FROM unnest($3::text[], $4::bytea[]) o (model, digest)
		 WHERE s.tenant_id = $1 AND s.session_key = $2 AND s.model = o.model AND s.digest = o.digest
		   AND s.state IN ('answered', 'failed')`, key.Tenant, key.Key, models, digests)
}

// insertKept writes the row of a summary that was taken in without a job, unless there is one.
func insertKept(ctx context.Context, tx pgx.Tx, key session.Key, n int, k *KeptSummary) error {
	provenance, err := json.Marshal(k.Answer.Provenance)
	if err != nil {
		return err
	}
	return Exec(ctx, tx, `
		INSERT INTO summaries AS s (tenant_id, session_key, model, digest, first_seq, last_seq, checkpoint_n, state,
		                            retain, summary, flags, provenance, answer_keys, offered, finished_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'answered', $8, $9, $10, $11, $12, true, now())
		ON CONFLICT (tenant_id, session_key, model, digest) DO UPDATE
		   SET state = 'answered', retain = excluded.retain, summary = excluded.summary, flags = excluded.flags,
		       provenance = excluded.provenance, answer_keys = excluded.answer_keys, offered = true, request = NULL,
		       reason = NULL, finished_at = excluded.finished_at
		 WHERE s.state <> 'answered'`,
		key.Tenant, key.Key, k.ID.Model, k.ID.Digest[:], k.First, k.Last, n, []byte(k.Answer.Retain),
		[]byte(k.Answer.Summary), texts(k.Answer.Flags), provenance, append([][]byte{}, k.Answer.Provenance.Keys...))
}

// LiveSummaries returns those of a session's summaries that models are asked for, and the newest that they have
// answered and failed.
func (s *Store) LiveSummaries(ctx context.Context, key session.Key) ([]session.Summary, error) {
	const newest = 200
	return QueryRows(ctx, s, key.Tenant, scanSummary, summaryColumns+`
		   AND state <> 'superseded'
		 ORDER BY finished_at DESC NULLS FIRST, model, digest
		 LIMIT $3`, [16]byte(key.Tenant), [16]byte(key.Key), newest)
}

// TakeAnswer keeps the answer of a summary that is due, completes its job, and asks for a compaction that takes it in.
// If the session's compaction is under way, the next one is asked for when that ends.
//
// Errors: ErrNotFound if the summary has ended, or the session is gone.
func (s *Store) TakeAnswer(ctx context.Context, id session.SummaryID, a session.SummaryAnswer, job int64) error {
	return s.endSummary(ctx, id, job, true, func(tx pgx.Tx) error { return answerSummary(ctx, tx, id, a) })
}

// TakeFailure does what TakeAnswer does for a model that has failed: see FailSummary. With compact, a compaction does
// without the summary at once.
//
// Errors: ErrNotFound if the summary has ended, or the session is gone.
func (s *Store) TakeFailure(
	ctx context.Context, id session.SummaryID, reason string, again time.Time, compact bool, job int64,
) error {
	return s.endSummary(ctx, id, job, compact, func(tx pgx.Tx) error {
		return failSummary(ctx, tx, id, reason, again)
	})
}

// endSummary ends a summary and its job under the lock of the session.
func (s *Store) endSummary(
	ctx context.Context, id session.SummaryID, job int64, compact bool, end func(pgx.Tx) error,
) error {
	return s.underLock(ctx, id.Session, func(tx pgx.Tx, _ lockedSession) error {
		if err := end(tx); err != nil {
			return err
		}
		err := Exec(ctx, tx, `
			UPDATE summaries
			   SET offered = $5
			 WHERE tenant_id = $1 AND session_key = $2 AND model = $3 AND digest = $4`, summaryArgs(id, !compact)...)
		if err != nil {
			return err
		}
		if err := s.queue.Complete(ctx, tx, job); err != nil || !compact {
			return err
		}
		_, _, err = s.enqueue(ctx, tx, id.Session, causeSummary, time.Time{}, false)
		return err
	})
}

// DropSummary ends a summary that nobody wants any more, and its job.
func (s *Store) DropSummary(ctx context.Context, id session.SummaryID, job int64) error {
	return s.InTenant(ctx, id.Session.Tenant, func(tx pgx.Tx) error {
		err := Exec(ctx, tx, `
			UPDATE summaries
			   SET state = 'superseded', finished_at = now()
			 WHERE tenant_id = $1 AND session_key = $2 AND model = $3 AND digest = $4 AND state IN ('due', 'asking')`,
			summaryArgs(id)...)
		if err != nil {
			return err
		}
		return s.queue.Complete(ctx, tx, job)
	})
}

// pendingSQL reports whether there is an answer, or a failure that somebody waits for, that no compaction has had.
const pendingSQL = `
	SELECT EXISTS (
	       SELECT
	         FROM summaries
	        WHERE tenant_id = $1 AND session_key = $2 AND NOT offered AND state IN ('answered', 'failed'))`

func pendingSummary(ctx context.Context, tx pgx.Tx, key session.Key) (bool, error) {
	return RowIn(ctx, tx, pgx.RowTo[bool], pendingSQL, key.Tenant, key.Key)
}

// followUp asks for the next compaction when one has ended: because the session is due again, or because a model has
// answered meanwhile.
func (s *Store) followUp(ctx context.Context, tx pgx.Tx, key session.Key) error {
	if err := s.compactIfDue(ctx, tx, key, "follow_up"); err != nil {
		return err
	}
	pending, err := pendingSummary(ctx, tx, key)
	if err == nil && pending {
		_, _, err = s.enqueue(ctx, tx, key, causeSummary, time.Time{}, false)
	}
	return err
}

// compactForgotten asks for a compaction if the newest checkpoint is forgotten: the run that was asked for then began
// before.
func (s *Store) compactForgotten(ctx context.Context, tx pgx.Tx, row lockedSession) error {
	forgotten, err := isForgotten(ctx, tx, row.Key, row.checkpoint)
	if err == nil && forgotten {
		_, _, err = s.enqueue(ctx, tx, row.Key, causeManual, time.Time{}, false)
	}
	return err
}

// isForgotten reports whether a checkpoint is forgotten; one that is not there is not.
func isForgotten(ctx context.Context, tx pgx.Tx, key session.Key, n int) (bool, error) {
	return RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT EXISTS (
		       SELECT
		         FROM checkpoints
		        WHERE tenant_id = $1 AND session_key = $2 AND n = $3 AND forgotten)`, key.Tenant, key.Key, n)
}

// PolicyOf returns the policy of a session; ErrNotFound.
func (s *Store) PolicyOf(ctx context.Context, key session.Key) (session.Policy, error) {
	var p session.Policy
	var outdated *layers
	err := s.query(ctx, key.Tenant, `
		SELECT p.document, p.tenant_version, p.session_version, `+layersSQL+`
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
		 WHERE s.tenant_id = $1 AND s.key = $2`, []any{[16]byte(key.Tenant), [16]byte(key.Key)},
		one(&p.Document, &p.Version.Tenant, &p.Version.Session, &outdated))
	if err == nil {
		err = outdated.merge(&p)
	}
	return p, err
}

// forgetCovering deletes the summaries of a session that cover one of the messages from first through last, whatever
// their state is.
func forgetCovering(ctx context.Context, tx pgx.Tx, key session.Key, first, last int64) error {
	return Exec(ctx, tx, `
		DELETE FROM summaries
		 WHERE tenant_id = $1 AND session_key = $2 AND first_seq <= $4 AND last_seq >= $3`,
		key.Tenant, key.Key, first, last)
}

// Rebuild has all summaries of a session made anew: it forgets what models have answered for it, marks its checkpoints
// as ones that nothing may begin with or restore, and asks for a compaction from the log. The newest checkpoint is
// served until that one is there; then its body goes. The others lose theirs now.
//
// Errors: ErrNotFound, ErrIdempotencyReused, ErrSessionBusy.
func (s *Store) Rebuild(ctx context.Context, at session.Address, id *session.Idempotency) (session.Run, bool, error) {
	return onceInSession(ctx, s, at, id, func(tx pgx.Tx, row lockedSession) (session.Run, error) {
		if err := ForgetAnswers(ctx, tx, row.Key); err != nil {
			return session.Run{}, err
		}
		err := Exec(ctx, tx, `
			UPDATE checkpoints
			   SET forgotten = true
			 WHERE tenant_id = $1 AND session_key = $2 AND NOT forgotten`, row.Tenant, row.Key.Key)
		if err != nil {
			return session.Run{}, err
		}
		err = Exec(ctx, tx, `
			UPDATE checkpoints
			   SET `+prunedCheckpoint+`
			 WHERE tenant_id = $1 AND session_key = $2 AND n <> $3 AND body IS NOT NULL`,
			row.Tenant, row.Key.Key, row.checkpoint)
		if err != nil {
			return session.Run{}, err
		}
		run, err := s.compactNow(ctx, tx, row.Key)
		if err != nil {
			return run, err
		}
		return run, recordSession(ctx, tx, at, audit.SummariesRebuild, about{"run": run.ID})
	})
}

// refuseForgotten returns ErrStale if the checkpoint on which a compaction builds was forgotten since it was planned.
func refuseForgotten(ctx context.Context, tx pgx.Tx, key session.Key, o Outcome) error {
	forgotten, err := isForgotten(ctx, tx, key, o.Base)
	if err == nil && forgotten != o.Forgotten {
		err = session.ErrStale
	}
	return err
}

// WholeCheckpoint reads checkpoint n of a session, 0 for the newest, with its body and state, and its session's format.
// A session without one has the zero Checkpoint.
//
// Errors: ErrNotFound, ErrPruned, *session.DamagedError.
func (s *Store) WholeCheckpoint(ctx context.Context, at session.Address, n int) (
	c Checkpoint, key session.Key, format session.Format, err error,
) {
	err = s.inSnapshot(ctx, at.Tenant, func(tx pgx.Tx) error {
		key.Tenant = at.Tenant
		err := tx.QueryRow(ctx, `
			SELECT key, format, CASE WHEN $3 = 0 THEN checkpoint_n ELSE $3 END
			  FROM sessions
			 WHERE tenant_id = $1 AND id = $2`, at.Tenant, at.ID, n).Scan(&key.Key, &format, &c.N)
		if err != nil || c.N == 0 {
			return NotFound(err)
		}
		if err := refuseUnkept(ctx, tx, key, c.N); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			SELECT through_seq, tokens, body, body_size, state, units, policy, engine_version
			  FROM checkpoints
			 WHERE tenant_id = $1 AND session_key = $2 AND n = $3`, key.Tenant, key.Key, c.N).
			Scan(&c.Through, &c.Tokens, &c.Body, &c.Size, &c.State, &c.Units, &c.Policy, &c.EngineVersion)
	})
	return c, key, format, err
}
