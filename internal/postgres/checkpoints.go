package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/session"
)

const recordColumns = `
	c.n, c.base_n AS base, c.restored_from, c.through_seq AS through, c.tokens, c.body_size AS body_bytes,
	c.body IS NOT NULL AS has_body, c.engine_version,
	encode(sha256(convert_to(c.policy::text, 'UTF8')), 'hex') AS policy_digest, c.run_id AS run, c.created_at,
	(SELECT (r.report #>> '{kept_prefix,tokens}')::bigint
	   FROM runs r
	  WHERE r.tenant_id = c.tenant_id AND r.id = c.run_id) AS kept`

var scanRecord = pgx.RowToStructByName[session.CheckpointRecord]

// Checkpoints returns the checkpoints of a session whose number is below before, newest first; 0 does not bound them.
// ErrNotFound if there is no such session.
func (s *Store) Checkpoints(
	ctx context.Context, at session.Address, before, limit int,
) ([]session.CheckpointRecord, error) {
	if before == 0 {
		before = math.MaxInt32
	}
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]session.CheckpointRecord, error) {
		return RowsIn(ctx, tx, scanRecord, `
			SELECT `+recordColumns+`
			  FROM checkpoints c
			 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.n < $3
			 ORDER BY c.n DESC
			 LIMIT $4`, at.Tenant, key.Key, before, limit)
	})
}

// Lineages reads checkpoints of a session by their numbers, 0 for the newest.
//
// Errors: ErrNotFound unless all are there; *session.DamagedError.
func (s *Store) Lineages(ctx context.Context, at session.Address, numbers ...int) ([]session.Lineage, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (found []session.Lineage, err error) {
		for _, n := range numbers {
			l, err := readLineage(ctx, tx, key, n)
			if err != nil {
				return nil, err
			}
			found = append(found, l)
		}
		return found, nil
	})
}

var lineageSQL = statement("lineage")

// prunedCheckpoint takes out of checkpoints what only serves to read them: the rendition, and what is as long as the
// log that it covers. In the place of the units and the open calls it puts how many there were.
const prunedCheckpoint = `body = NULL, state = NULL, validator_state = NULL, open_calls = '{}',
		       units = CASE jsonb_typeof(units)
		               WHEN 'array' THEN jsonb_build_object('units', jsonb_array_length(units),
		                                                    'open_calls', cardinality(open_calls))
		               ELSE units END`

// How many units and open calls checkpoint c has, or had before it was pruned.
const (
	unitsSQL = `CASE jsonb_typeof(c.units)
		       WHEN 'array' THEN jsonb_array_length(c.units)
		       WHEN 'object' THEN coalesce((c.units ->> 'units')::int, 0)
		       ELSE 0 END`
	openCallsSQL = `CASE jsonb_typeof(c.units)
		       WHEN 'object' THEN coalesce((c.units ->> 'open_calls')::int, 0)
		       ELSE cardinality(c.open_calls) END`
)

func readLineage(ctx context.Context, tx pgx.Tx, key session.Key, n int) (l session.Lineage, err error) {
	l, err = RowIn(ctx, tx, pgx.RowToStructByNameLax[session.Lineage], `
		SELECT c.policy, `+unitsSQL+` AS units, `+openCallsSQL+` AS open_calls,
		       `+recordColumns+`
		  FROM sessions s
		  JOIN checkpoints c ON c.tenant_id = $1 AND c.session_key = s.key
		                    AND c.n = CASE WHEN $3 = 0 THEN s.checkpoint_n ELSE $3 END
		 WHERE s.tenant_id = $1 AND s.key = $2`, key.Tenant, key.Key, n)
	if errors.Is(err, session.ErrNotFound) {
		err = missingCheckpoint(ctx, tx, key, n)
	}
	if err != nil {
		return l, err
	}
	if err := refuseUnkept(ctx, tx, key, l.N); err != nil && !errors.Is(err, session.ErrPruned) {
		return l, err
	}
	l.Manifests, err = RowsIn(ctx, tx, pgx.RowTo[json.RawMessage], lineageSQL,
		pgx.NamedArgs{"tenant": key.Tenant, "session": key.Key, "n": l.N})
	return l, err
}

func pruned(n int) error { return fmt.Errorf("checkpoint %d: %w", n, session.ErrPruned) }

// Restore rolls a session back: it makes a new checkpoint with the rendition of checkpoint n, so that all messages
// after n are the tail again. The number of the new one makes a running compaction stale. The session is not due again
// until it has grown, even if it is over its trigger.
//
// Errors: ErrNotFound, ErrPruned, ErrIdempotencyReused.
func (s *Store) Restore(
	ctx context.Context, at session.Address, n int, id *session.Idempotency,
) (session.CheckpointRecord, bool, error) {
	return onceInSession(ctx, s, at, id, func(tx pgx.Tx, row lockedSession) (session.CheckpointRecord, error) {
		made, err := copyCheckpoint(ctx, tx, row, n)
		if err != nil {
			return made, err
		}
		tokens, err := rollBack(ctx, tx, row, made, fmt.Sprintf("checkpoint %d was restored", made.Base))
		if err != nil {
			return made, err
		}
		if row, err = lockSessionKey(ctx, tx, row.Key); err != nil { // the bytes of its view are others now
			return made, err
		}
		if err := rearm(ctx, tx, row, row.rule.FloorAfter(tokens+row.overhead)); err != nil {
			return made, err
		}
		return made, recordSession(ctx, tx, at, audit.Restore, about{"checkpoint": n, "made": made.N})
	})
}

// copyCheckpoint inserts a copy of checkpoint n as the one after the newest. The copy builds on n: it takes nothing
// more out of the view and names no other results. The checkpoints before the KeptCheckpoints newest ones lose their
// bodies, earlier restored ones included.
func copyCheckpoint(
	ctx context.Context, tx pgx.Tx, row lockedSession, n int,
) (made session.CheckpointRecord, err error) {
	if err := refuseUnkept(ctx, tx, row.Key, n); err != nil {
		return made, err
	}
	made, err = RowIn(ctx, tx, scanRecord, `
		INSERT INTO checkpoints AS c (tenant_id, session_key, n, base_n, restored_from, through_seq, tokens, body,
		                              body_size, state, units, manifest, open_calls, policy, engine_version, run_id,
		                              validator_state, body_digest, state_digest, made_after)
		SELECT tenant_id, session_key, $4, n, n, through_seq, tokens, body, body_size, state, units,
		       '[]', open_calls, policy, engine_version, $5, validator_state, body_digest, state_digest, $6
		  FROM checkpoints
		 WHERE tenant_id = $1 AND session_key = $2 AND n = $3
		RETURNING `+recordColumns, row.Tenant, row.Key.Key, n, row.checkpoint+1, uuid.Must(uuid.NewV7()), row.lastSeq)
	if err != nil {
		return made, err
	}
	return made, Exec(ctx, tx, `
		UPDATE checkpoints
		   SET `+prunedCheckpoint+`
		 WHERE tenant_id = $1 AND session_key = $2 AND n <= $3 AND body IS NOT NULL`,
		row.Tenant, row.Key.Key, made.N-KeptCheckpoints)
}

// refuseUnkept returns ErrPruned for a checkpoint without a body, and a *session.DamagedError for one that is not what
// was written.
func refuseUnkept(ctx context.Context, tx pgx.Tx, key session.Key, n int) error {
	var kept, forgotten, whole bool
	err := tx.QueryRow(ctx, `
		SELECT c.body IS NOT NULL, c.forgotten, coalesce(`+wholeSQL(`c`)+`, true)
		  FROM checkpoints c
		 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.n = $3`, key.Tenant, key.Key, n).
		Scan(&kept, &forgotten, &whole)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return missingCheckpoint(ctx, tx, key, n)
	case err != nil:
		return err
	case forgotten:
		return fmt.Errorf("its summaries are made anew: %w", pruned(n))
	case !kept:
		return pruned(n)
	case !whole:
		return session.DamagedCheckpoint(n, errOtherDigest)
	}
	return nil
}

// separateTokens counts the tokens of the separate system prompt of session s, whose key is $2.
var separateTokens = `(SELECT coalesce(sum(m.tokens), 0)
	                FROM messages m
	               WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.seq > 0 AND m.seq <= ` + PinnedElsewhere + `
	                 AND m.removed_at IS NULL)`

// shrunkSQL counts by how much a checkpoint has shrunk the view, which had $3 tokens before: the next usage may be of a
// request that was made before it.
const shrunkSQL = `
	UPDATE sessions
	   SET shrunk_tokens = shrunk_tokens + $3 - context_tokens
	 WHERE tenant_id = $1 AND key = $2`

// newestSQL makes a checkpoint the session's newest and counts the tokens of its view.
var newestSQL = statement("newest_checkpoint", "{separate_tokens}", separateTokens, "{pinned}", PinnedElsewhere)

// rollBack makes a copied checkpoint the session's newest, records that as a run, which has no job, and returns the
// tokens of the view.
func rollBack(
	ctx context.Context, tx pgx.Tx, row lockedSession, made session.CheckpointRecord, reason string,
) (tokens int64, err error) {
	err = tx.QueryRow(ctx, newestSQL,
		row.Tenant, row.Key.Key, made.N, made.Through, made.BodyBytes, made.Tokens, 0).Scan(&tokens)
	if err != nil {
		return 0, err
	}
	if err := Exec(ctx, tx, shrunkSQL, row.Tenant, row.Key.Key, row.contextTokens); err != nil {
		return 0, err
	}
	return tokens, Exec(ctx, tx, `
		INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id, base_n, checkpoint_n, through_seq,
		                  tokens_before, tokens_after, results_persisted, bytes_persisted, reason,
		                  started_at, finished_at)
		VALUES ($1, $2, $3, 'restore', 'done', 0, $4, $5, $6, $7, $8, 0, 0, $9, now(), clock_timestamp())`,
		row.Tenant, made.Run, row.Key.Key, made.Base, made.N, made.Through,
		row.contextTokens, tokens, reason)
}

// ErrOutgrown reports that with what was appended since, a view of before has no room any more.
var ErrOutgrown = errors.New("it went on: with what was appended since, its view of before would be over the hard " +
	"limit")

// ReturnTo has a session serve again what it served at a checkpoint, or its log if that is 0, with what was appended
// since behind that: it makes a copy of that one, and sets the floor as Restore does. appended says whether there is
// any; the reason is that of the run.
//
// Errors: ErrOutgrown, ErrPruned, ErrLogTooLarge, *session.DamagedError.
func (l Locked) ReturnTo(ctx context.Context, tx pgx.Tx, base int, appended bool, reason string) error {
	made, err := copyOrBlank(ctx, tx, l.row, base)
	if err != nil {
		return err
	}
	tokens, err := rollBack(ctx, tx, l.row, made, reason)
	if err != nil {
		return err
	}
	row, err := lockSessionKey(ctx, tx, l.row.Key) // the bytes of its view are others now
	if err != nil {
		return err
	}
	row.rule.Floor = due.Floor{}
	if reached, isDue := row.reached(); appended && isDue && reached == due.Hard {
		return ErrOutgrown
	}
	if _, err := SupersedeSummaries(ctx, tx, row.Key, nil); err != nil { // an answer would compact it again
		return err
	}
	return rearm(ctx, tx, row, row.rule.FloorAfter(tokens+row.overhead))
}

func copyOrBlank(ctx context.Context, tx pgx.Tx, row lockedSession, n int) (session.CheckpointRecord, error) {
	if n == 0 {
		return blankCheckpoint(ctx, tx, row)
	}
	return copyCheckpoint(ctx, tx, row, n)
}
