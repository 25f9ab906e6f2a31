package search

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// indexStep is a session whose messages behind After are to be indexed.
type indexStep struct {
	Key      uuid.UUID
	Session  string
	After    int64
	Rules    rules
	Indexed  int64 // up to which seq it is
	WasRules rules // of what is indexed
	Rests    bool  // nothing was appended for a while
}

// markBehind notes which sessions have messages that are not indexed, and asks for the job that indexes them. Sessions
// of which that is known need no more than that. The job sleeps until the first of them rests, unless there are more
// than a search reads.
func markBehind(ctx context.Context, tx pgx.Tx, s *postgres.Store, tenant uuid.UUID, ids []string) error {
	marked, err := tx.Exec(ctx, `
		INSERT INTO search_sessions AS i (tenant_id, session_key, due_since)
		SELECT $1, s.key, now()
		  FROM sessions s
		  LEFT JOIN search_sessions i ON i.tenant_id = s.tenant_id AND i.session_key = s.key
		 WHERE s.tenant_id = $1
		   AND s.id = ANY ($2)
		   AND s.frozen_at IS NULL
		   AND `+notIndexed+`
		 ORDER BY s.key
		ON CONFLICT (tenant_id, session_key) DO UPDATE -- behind a step that is being committed
		   SET due_since = excluded.due_since
		 WHERE i.due_since IS NULL`, tenant, ids)
	if err != nil || marked.RowsAffected() == 0 {
		return err
	}
	if err := postgres.AddTask(ctx, tx, tenant, task); err != nil {
		return err
	}
	job, inserted, err := s.Queue().Insert(ctx, tx, indexArgs{Tenant: tenant}, time.Time{})
	if err != nil || inserted {
		return err
	}
	due, err := postgres.RowIn(ctx, tx, pgx.RowTo[int], `
		SELECT count(*)
		  FROM (SELECT
		          FROM search_sessions
		         WHERE tenant_id = $1 AND due_since IS NOT NULL
		         LIMIT $2) d`, tenant, freshSessions+1)
	if err != nil || due <= freshSessions {
		return err
	}
	return s.Queue().RunNow(ctx, tx, job)
}

// notIndexed is the condition that a session s of the tenant $1 has messages or uploaded results that are not indexed
// by the tenant's rules, as far as its row i and its uploads say.
var notIndexed = `(coalesce(i.indexed_seq, 0) < s.last_seq OR i.rules <> ` + rulesSQL + ` OR ` +
	uploadsNotIndexed(`s.key`) + `)`

// isBehind is the condition that this is so and was not noted, in statements that have no row of the index.
var isBehind = `(
	       SELECT i.due_since IS NULL AND ` + notIndexed + `
	         FROM (VALUES (true)) one
	         LEFT JOIN search_sessions i ON i.tenant_id = $1 AND i.session_key = s.key)`

// uploadsNotIndexed returns the condition that a session of the tenant $1 has uploaded results that are to be indexed.
func uploadsNotIndexed(key string) string {
	return `
		       ` + resultsSQL + ` AND EXISTS (
		       SELECT
		         FROM uploads u
		        WHERE u.tenant_id = $1
		          AND u.session_key = ` + key + `
		          AND u.finished_at IS NOT NULL
		          AND u.searched_in IS DISTINCT FROM ` + rulesSQL + `)`
}

// requeueIndex inserts the job again that indexes a tenant's sessions, if it was lost.
func (s store) requeueIndex(ctx context.Context, tenant uuid.UUID) error {
	return postgres.InTenant(ctx, s.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		behind, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (SELECT FROM search_sessions WHERE tenant_id = $1 AND due_since IS NOT NULL)`, tenant)
		if err != nil || !behind {
			return err
		}
		_, _, err = s.Queue().Insert(ctx, tx, indexArgs{Tenant: tenant}, time.Time{})
		return err
	})
}

// nextToIndex returns sessions of a tenant that are not indexed, those first of which it is known for the longest time:
// those that rest, and those of which a search does not read what is not indexed.
func (s store) nextToIndex(ctx context.Context, tenant uuid.UUID, rest time.Duration, limit int) ([]indexStep, error) {
	return postgres.QueryRows(ctx, s.Store, tenant, pgx.RowToStructByPos[indexStep], `
		SELECT d.session_key, d.id, CASE WHEN d.was = d.rules THEN d.indexed_seq ELSE 0 END, d.rules, d.indexed_seq,
		       d.was, d.rests
		  FROM (SELECT i.session_key, s.id, i.due_since, i.indexed_seq, i.rules AS was, l.rules,
		               s.last_seq - i.indexed_seq AS unread,
		               coalesce(s.last_append_at, s.created_at) <= now() - $3::interval AS rests,
		               row_number() OVER (ORDER BY i.due_since DESC, i.session_key) AS place
		          FROM (SELECT *
		                  FROM search_sessions
		                 WHERE tenant_id = $1 AND due_since IS NOT NULL
		                 ORDER BY due_since, session_key
		                 LIMIT $2::int + $5::int) i
		          JOIN sessions s ON s.tenant_id = i.tenant_id AND s.key = i.session_key
		         CROSS JOIN (SELECT `+rulesSQL+` AS rules) l) d
		 WHERE d.rests
		    OR d.was <> d.rules
		    OR d.unread >= $4
		    OR d.unread > 0 AND d.place > $5
		    OR `+uploadsNotIndexed(`d.session_key`)+`
		 ORDER BY d.due_since, d.session_key
		 LIMIT $2`, tenant, limit, rest, freshMessages, freshSessions)
}

// nextRest returns how long it takes until the first of the sessions of a tenant rests that are not indexed. If there
// is none, it completes the job: whatever is appended from then on needs another one.
func (s store) nextRest(
	ctx context.Context, tenant uuid.UUID, rest time.Duration, job int64,
) (wait time.Duration, more bool, err error) {
	err = postgres.InTenant(ctx, s.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		next, err := postgres.RowIn(ctx, tx, pgx.RowTo[*time.Duration], `
			SELECT min(coalesce(s.last_append_at, s.created_at)) + $2::interval - now()
			  FROM search_sessions i
			  JOIN sessions s ON s.tenant_id = i.tenant_id AND s.key = i.session_key
			 WHERE i.tenant_id = $1 AND i.due_since IS NOT NULL`, tenant, rest)
		if err != nil {
			return err
		}
		if more = next != nil; more {
			wait = *next
			return nil
		}
		return s.Queue().Complete(ctx, tx, job)
	})
	return wait, more, err
}

// withWords adds the words of passages.
func (s store) withWords(
	ctx context.Context, tenant uuid.UUID, by rules, passages []passage,
) (list []indexedPassage, err error) {
	texts := make([]string, len(passages))
	for i := range passages {
		texts[i] = passages[i].Text
	}
	words, err := postgres.QueryRows(ctx, s.Store, tenant, pgx.RowTo[[]string], `
		SELECT tsvector_to_array(to_tsvector($1::text::regconfig, t.text))
		  FROM unnest($2::text[]) WITH ORDINALITY AS t (text, n)
		 ORDER BY t.n`, by.language(), texts)
	for i := range words {
		list = append(list, indexedPassage{passages[i].Seq, len(texts[i]), words[i]})
	}
	return list, err
}

// putIndex stores the blocks of a step, which are those of its session's messages through a seq, of which inPart
// messages are not indexed whole. It does nothing if another worker was there before.
//
// Errors: ErrNotFound if the session is gone.
func (s store) putIndex(
	ctx context.Context, tenant uuid.UUID, step indexStep, through int64, inPart int, blocks []block,
) error {
	return postgres.InTenant(ctx, s.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		lastSeq, err := postgres.RowIn(ctx, tx, pgx.RowTo[int64], `
			SELECT last_seq
			  FROM sessions
			 WHERE tenant_id = $1 AND key = $2
			   FOR KEY SHARE`, tenant, step.Key) // before its other rows, as whoever erases it does
		if err != nil {
			return err
		}
		err = postgres.ExecOne(ctx, tx, errIndexed, `
			UPDATE search_sessions
			   SET rules = $3,
			       indexed_seq = $4::bigint,
			       in_part = CASE WHEN rules = $3 THEN in_part ELSE 0 END + $5::int,
			       due_since = CASE WHEN $6::bigint > $4::bigint OR $3 <> `+rulesSQL+` OR NOT $9
			                             OR `+uploadsNotIndexed(`search_sessions.session_key`)+` THEN now() END
			 WHERE tenant_id = $1 AND session_key = $2 AND indexed_seq = $7 AND rules = $8`,
			tenant, step.Key, step.Rules, through, inPart, lastSeq, step.Indexed, step.WasRules, step.Rests)
		if errors.Is(err, errIndexed) {
			return nil
		}
		key := session.Key{Tenant: tenant, Key: step.Key}
		if err == nil && step.After == 0 {
			err = forgetIndex(ctx, tx, key, step.Rules)
		}
		if err == nil && len(blocks) > 0 && blocks[0].N == 0 {
			err = mergeWithLast(ctx, tx, key, &blocks[0])
		}
		if err != nil {
			return err
		}
		return insertBlocks(ctx, tx, key, blocks)
	})
}

var errIndexed = errors.New("another worker has indexed the session")

// forgetIndex deletes what is indexed of a session's messages and, if results are not found, of its uploaded results.
func forgetIndex(ctx context.Context, tx pgx.Tx, key session.Key, by rules) error {
	err := postgres.Exec(ctx, tx, `
		DELETE FROM search_blocks
		 WHERE tenant_id = $1 AND session_key = $2 AND (first_seq > 0 OR NOT $3)`, key.Tenant, key.Key, by.results())
	if err != nil || by.results() {
		return err
	}
	return postgres.Exec(ctx, tx, `
		UPDATE uploads
		   SET searched_in = NULL, searched_in_part = false
		 WHERE tenant_id = $1 AND session_key = $2 AND searched_in IS NOT NULL`, key.Tenant, key.Key)
}

// mergeWithLast has a block take in the last ones of its session that are not larger than it. So a session of which
// little is appended at a time has few blocks, and its words are written few times.
func mergeWithLast(ctx context.Context, tx pgx.Tx, key session.Key, b *block) error {
	for {
		last, err := postgres.RowsIn(ctx, tx, pgx.RowToStructByPos[block], `
			DELETE FROM search_blocks
			 WHERE tenant_id = $1
			   AND session_key = $2
			   AND (first_seq, n) = (SELECT first_seq, n
			                           FROM search_blocks
			                          WHERE tenant_id = $1 AND session_key = $2 AND first_seq > 0
			                          ORDER BY first_seq DESC, n DESC
			                          LIMIT 1)
			   AND n = 0
			   AND bytes <= least($3::int, $4::int - $3::int)
			RETURNING first_seq, n, bytes, seqs, words`, key.Tenant, key.Key, b.Bytes, blockBytes)
		if err != nil || len(last) == 0 {
			return err
		}
		b.takeIn(&last[0])
	}
}

func insertBlocks(ctx context.Context, tx pgx.Tx, key session.Key, blocks []block) error {
	batch := &pgx.Batch{}
	for i := range blocks {
		b := &blocks[i]
		batch.Queue(`
			INSERT INTO search_blocks (tenant_id, session_key, first_seq, n, bytes, seqs, words)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, key.Tenant, key.Key, b.First, b.N, b.Bytes, b.Seqs, b.Words)
	}
	return tx.SendBatch(ctx, batch).Close()
}
