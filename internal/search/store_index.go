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
	Key         uuid.UUID
	Session     string
	After       int64
	Language    string
	Indexed     int64  // up to which seq it is
	WasLanguage string // of what is indexed
}

// indexedPassage is a passage to index. That of an uploaded result has the seq 0, and the number of the upload as its
// block.
type indexedPassage struct {
	Seq              int64
	N                int // of the message, or among those of all uploads
	Block, At, Bytes int // see passage
	Text             string
}

// markBehind notes which sessions have messages that are not indexed, and asks for the job that indexes them. Sessions
// of which that is known need no more than that.
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
	if err := postgres.AddChore(ctx, tx, tenant, chore); err != nil {
		return err
	}
	_, _, err = s.Queue().Insert(ctx, tx, indexArgs{Tenant: tenant}, time.Time{})
	return err
}

// notIndexed is the condition that a session s of the tenant $1 has messages or uploaded results that are not indexed
// by the rules of the tenant's language, as far as its row i and its uploads say.
var notIndexed = `(coalesce(i.indexed_seq, 0) < s.last_seq OR i.language <> ` + searchLanguage + ` OR ` +
	uploadsNotIndexed(`s.key`) + `)`

// isBehind is the condition that this is so and was not noted, in statements that have no row of the index.
var isBehind = `(
	       SELECT i.due_since IS NULL AND ` + notIndexed + `
	         FROM (VALUES (true)) one
	         LEFT JOIN search_sessions i ON i.tenant_id = $1 AND i.session_key = s.key)`

// uploadsNotIndexed returns the condition that a session of the tenant $1 has uploaded results that are not indexed by
// the rules of the tenant's language.
func uploadsNotIndexed(key string) string {
	return `
		       EXISTS (
		       SELECT
		         FROM uploads u
		        WHERE u.tenant_id = $1
		          AND u.session_key = ` + key + `
		          AND u.finished_at IS NOT NULL
		          AND u.searched_in IS DISTINCT FROM ` + searchLanguage + `)`
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

// nextToIndex returns sessions of a tenant that are not indexed, those first of which it is known for the longest time.
func (s store) nextToIndex(ctx context.Context, tenant uuid.UUID, limit int) ([]indexStep, error) {
	return postgres.QueryRows(ctx, s.Store, tenant, pgx.RowToStructByPos[indexStep], `
		SELECT i.session_key, s.id, CASE WHEN i.language = l.language THEN i.indexed_seq ELSE 0 END,
		       l.language, i.indexed_seq, i.language
		  FROM search_sessions i
		  JOIN sessions s ON s.tenant_id = i.tenant_id AND s.key = i.session_key
		 CROSS JOIN (SELECT `+searchLanguage+` AS language) l
		 WHERE i.tenant_id = $1
		   AND i.due_since IS NOT NULL
		 ORDER BY i.due_since, i.session_key
		 LIMIT $2`, tenant, limit)
}

// putIndex stores the passages of a step, which are those of its session's messages through a seq, of which inPart
// messages are not indexed whole. It does nothing if another worker was there before.
//
// Errors: ErrNotFound if the session is gone.
func (s store) putIndex(
	ctx context.Context, tenant uuid.UUID, step indexStep, through int64, inPart int, passages []indexedPassage,
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
			   SET language = $3,
			       indexed_seq = $4::bigint,
			       in_part = CASE WHEN language = $3 THEN in_part ELSE 0 END + $5::int,
			       due_since = CASE WHEN $6::bigint > $4::bigint OR $3 <> `+searchLanguage+`
			                             OR `+uploadsNotIndexed(`search_sessions.session_key`)+` THEN now() END
			 WHERE tenant_id = $1 AND session_key = $2 AND indexed_seq = $7 AND language = $8`,
			tenant, step.Key, step.Language, through, inPart, lastSeq, step.Indexed, step.WasLanguage)
		if errors.Is(err, errIndexed) {
			return nil
		}
		if err == nil && step.After == 0 {
			err = postgres.Exec(ctx, tx, `
				DELETE FROM search_texts
				 WHERE tenant_id = $1 AND session_key = $2 AND seq > 0`, tenant, step.Key)
		}
		if err != nil {
			return err
		}
		return insertPassages(ctx, tx, session.Key{Tenant: tenant, Key: step.Key}, step.Language, passages)
	})
}

var errIndexed = errors.New("another worker has indexed the session")

func insertPassages(ctx context.Context, tx pgx.Tx, key session.Key, language string, passages []indexedPassage) error {
	if len(passages) == 0 {
		return nil
	}
	var c struct {
		seqs                 []int64
		n, pieces, at, bytes []int
		texts                []string
	}
	for _, p := range passages {
		c.seqs = append(c.seqs, p.Seq)
		c.n = append(c.n, p.N)
		c.pieces = append(c.pieces, p.Block)
		c.at = append(c.at, p.At)
		c.bytes = append(c.bytes, p.Bytes)
		c.texts = append(c.texts, p.Text)
	}
	return postgres.Exec(ctx, tx, `
		INSERT INTO search_texts (tenant_id, session_key, seq, n, piece, at, bytes, words)
		SELECT $1, $2, t.seq, t.n, t.piece, t.at, t.bytes,
		       to_tsvector($3::text::regconfig, t.text) || array_to_tsvector(ARRAY[search_tenant_word($1)])
		  FROM unnest($4::bigint[], $5::int[], $6::int[], $7::int[], $8::int[], $9::text[])
		       AS t (seq, n, piece, at, bytes, text)
		 ORDER BY t.seq, t.n`, key.Tenant, key.Key, language, c.seqs, c.n, c.pieces, c.at, c.bytes, c.texts)
}
