package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/session"
)

// maxRequestBytes bounds what a stored request is unpacked to.
const maxRequestBytes = 1 << 30

var (
	requestEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(true))
	requestDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxRequestBytes))
)

// InsertDue notes the summaries that a checkpoint waits for, in the transaction that commits it, and returns those
// that a job must ask for. One that a model has answered already is not asked for, nor is one that has failed before
// its time to be asked again.
func InsertDue(ctx context.Context, tx pgx.Tx, key session.Key, checkpoint int, due []session.DueSummary) (
	ask []session.SummaryID, err error,
) {
	for _, d := range due {
		found, err := RowsIn(ctx, tx, pgx.RowTo[string], `
			INSERT INTO summaries AS s (tenant_id, session_key, model, digest, first_seq, last_seq, checkpoint_n,
			                            request)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (tenant_id, session_key, model, digest) DO UPDATE
			   SET state = 'due', request = excluded.request, checkpoint_n = excluded.checkpoint_n, attempts = 0,
			       reason = NULL, ask_after = NULL, asked_at = NULL, finished_at = NULL
			 WHERE s.state = 'superseded' OR s.state = 'failed' AND (s.ask_after <= now()) IS NOT FALSE
			RETURNING state`, key.Tenant, key.Key, d.Model, d.Digest[:], d.First, d.Last, checkpoint,
			requestEncoder.EncodeAll(d.Request, nil))
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			ask = append(ask, session.SummaryID{Session: key, Model: d.Model, Digest: d.Digest})
		}
	}
	return ask, nil
}

// BeginSummary notes that a job asks for a summary, and returns it.
//
// Errors: ErrNotFound if it has ended, or the session is gone.
func (s *Store) BeginSummary(ctx context.Context, id session.SummaryID) (due session.DueSummary, err error) {
	due = session.DueSummary{Model: id.Model, Digest: id.Digest}
	var packed []byte
	err = s.query(ctx, id.Session.Tenant, `
		UPDATE summaries
		   SET state = 'asking', attempts = attempts + 1, asked_at = now()
		 WHERE tenant_id = $1 AND session_key = $2 AND model = $3 AND digest = $4 AND state IN ('due', 'asking')
		RETURNING first_seq, last_seq, request`, summaryArgs(id), one(&due.First, &due.Last, &packed))
	if err != nil {
		return due, err
	}
	if due.Request, err = requestDecoder.DecodeAll(packed, nil); err != nil {
		return due, fmt.Errorf("the request of the summary of messages %d to %d: %w", due.First, due.Last, err)
	}
	return due, nil
}

func summaryArgs(id session.SummaryID, more ...any) []any {
	return append([]any{id.Session.Tenant, id.Session.Key, id.Model, id.Digest[:]}, more...)
}

// AnswerSummary keeps the answer of a summary that is due.
//
// Errors: ErrNotFound if it has ended, or the session is gone.
func (s *Store) AnswerSummary(ctx context.Context, id session.SummaryID, a session.SummaryAnswer) error {
	return s.InTenant(ctx, id.Session.Tenant, func(tx pgx.Tx) error { return answerSummary(ctx, tx, id, a) })
}

func answerSummary(ctx context.Context, tx pgx.Tx, id session.SummaryID, a session.SummaryAnswer) error {
	provenance, err := json.Marshal(a.Provenance)
	if err != nil {
		return err
	}
	keys := append([][]byte{}, a.Provenance.Keys...) // nil would be NULL
	return ExecOne(ctx, tx, session.ErrNotFound, `
		UPDATE summaries
		   SET state = 'answered', retain = $5, summary = $6, flags = $7, provenance = $8, answer_keys = $9,
		       request = NULL, finished_at = now()
		 WHERE tenant_id = $1 AND session_key = $2 AND model = $3 AND digest = $4 AND state IN ('due', 'asking')`,
		summaryArgs(id, []byte(a.Retain), []byte(a.Summary), texts(a.Flags), provenance, keys)...)
}

// FailSummary gives up a summary that is due, with the reason that its owner sees. A compaction asks for it again from
// again on; the zero time means at once.
//
// Errors: ErrNotFound if it has ended, or the session is gone.
func (s *Store) FailSummary(ctx context.Context, id session.SummaryID, reason string, again time.Time) error {
	return s.InTenant(ctx, id.Session.Tenant, func(tx pgx.Tx) error { return failSummary(ctx, tx, id, reason, again) })
}

func failSummary(ctx context.Context, tx pgx.Tx, id session.SummaryID, reason string, again time.Time) error {
	after := &again
	if again.IsZero() {
		after = nil
	}
	return ExecOne(ctx, tx, session.ErrNotFound, `
		UPDATE summaries
		   SET state = 'failed', reason = $5, ask_after = $6, finished_at = now()
		 WHERE tenant_id = $1 AND session_key = $2 AND model = $3 AND digest = $4 AND state IN ('due', 'asking')`,
		summaryArgs(id, Text(reason), after)...)
}

// SupersedeSummaries ends, in a transaction, the summaries of a session that are due or have failed, but for those
// that a checkpoint still waits for. It returns how many. A checkpoint that can be restored may have waited for one
// that ended: its request stays as long.
func SupersedeSummaries(
	ctx context.Context, tx pgx.Tx, key session.Key, waited []session.SummaryDigest,
) (int64, error) {
	digests := make([][]byte, len(waited))
	for i := range waited {
		digests[i] = waited[i][:]
	}
	tag, err := tx.Exec(ctx, `
		UPDATE summaries
		   SET state = 'superseded', finished_at = now()
		 WHERE tenant_id = $1 AND session_key = $2 AND state IN ('due', 'asking', 'failed') AND digest <> ALL ($3)`,
		key.Tenant, key.Key, digests)
	if err != nil {
		return 0, err
	}
	return tag.RowsAffected(), Exec(ctx, tx, `
		UPDATE summaries
		   SET request = NULL
		 WHERE tenant_id = $1 AND session_key = $2 AND state = 'superseded' AND request IS NOT NULL
		   AND finished_at < (SELECT min(created_at)
		                        FROM checkpoints
		                       WHERE tenant_id = $1 AND session_key = $2 AND body IS NOT NULL)`, key.Tenant, key.Key)
}

const summaryColumns = `
		SELECT model, digest, first_seq, last_seq, checkpoint_n, state, attempts, retain, summary, flags, provenance,
		       answer_keys, coalesce(reason, ''), ask_after, created_at, asked_at, finished_at
		  FROM summaries
		 WHERE tenant_id = $1 AND session_key = $2`

func scanSummary(row pgx.CollectableRow) (found session.Summary, err error) {
	var digest, retain, text, provenance []byte
	err = row.Scan(&found.Model, &digest, &found.First, &found.Last, &found.Checkpoint, &found.State, &found.Attempts,
		&retain, &text, &found.Flags, &provenance, &found.Provenance.Keys, &found.Reason, &found.AskAfter,
		&found.CreatedAt, &found.AskedAt, &found.FinishedAt)
	if err == nil && provenance != nil {
		err = json.Unmarshal(provenance, &found.Provenance)
	}
	copy(found.Digest[:], digest)
	found.Retain, found.SummaryAnswer.Summary = string(retain), string(text)
	return found, err
}

// Summaries lists the summaries that models have to write or have written for a session, by their first messages and
// then by the time they were asked for.
func (s *Store) Summaries(ctx context.Context, key session.Key) ([]session.Summary, error) {
	return QueryRows(ctx, s, key.Tenant, scanSummary, summaryColumns+`
		 ORDER BY first_seq, created_at, model, digest`, key.Tenant, key.Key)
}

// SummariesOf returns those of a session's summaries that a model has to write or has written to these requests.
func (s *Store) SummariesOf(ctx context.Context, key session.Key, model string, digests []session.SummaryDigest) (
	map[session.SummaryDigest]session.Summary, error,
) {
	wanted := make([][]byte, len(digests))
	for i := range digests {
		wanted[i] = digests[i][:]
	}
	list, err := QueryRows(ctx, s, key.Tenant, scanSummary, summaryColumns+` AND model = $3 AND digest = ANY ($4)`,
		key.Tenant, key.Key, model, wanted)
	found := make(map[session.SummaryDigest]session.Summary, len(list))
	for _, one := range list {
		found[one.Digest] = one
	}
	return found, err
}

// ForgetAnswers deletes, in a transaction, all that models have answered for a session: its summaries, its calls, and
// the calls that other sessions have made and whose answers it has used. Nothing of it can come back without a model
// being asked again.
func ForgetAnswers(ctx context.Context, tx pgx.Tx, key session.Key) error {
	err := Exec(ctx, tx, `
		DELETE FROM model_answers
		 WHERE tenant_id = $1
		   AND (session_key = $2
		        OR key IN (SELECT unnest(answer_keys)
		                     FROM summaries
		                    WHERE tenant_id = $1 AND session_key = $2))`, key.Tenant, key.Key)
	if err != nil {
		return err
	}
	return Exec(ctx, tx, `
		DELETE FROM summaries
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
}
