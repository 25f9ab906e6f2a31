// Package persist keeps full tool results, so that a view can name them instead of holding them. It owns the tables
// results and result_bodies.
//
// Start at Store.Put, which a compaction calls before it commits a checkpoint that names the results, and Store.Read,
// which brings one back.
package persist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Result is what is known of a persisted result without its body.
type Result struct {
	Ref       string
	Seq       int64
	Part      int
	Tool      string
	CallID    string
	Category  string
	MediaType string
	Bytes     int64
	Lines     int64
	Tokens    int64
	SHA256    [32]byte
	CreatedAt time.Time
}

// NewResult is a result to persist.
type NewResult struct {
	Result
	Body []byte
}

// Store keeps results in PostgreSQL, beside the sessions that they belong to.
type Store struct{ pool *pgxpool.Pool }

// NewStore is a Store on pool.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// batchBytes bounds what one transaction of Put carries.
const batchBytes = 8 << 20

// Put persists results of a session. Putting a result that is there already changes nothing, so a compaction that was
// interrupted simply puts again. stored is the number of bytes that its bodies have compressed. ErrNotFound if the
// session is gone.
func (s *Store) Put(ctx context.Context, key session.Key, results []NewResult) (stored int64, err error) {
	for len(results) > 0 {
		n, size := 0, 0
		for n < len(results) && (n == 0 || size+len(results[n].Body) <= batchBytes) {
			size += len(results[n].Body)
			n++
		}
		bytes, err := s.putBatch(ctx, key, results[:n])
		if err != nil {
			return stored, err
		}
		stored += bytes
		results = results[n:]
	}
	return stored, nil
}

func (s *Store) putBatch(ctx context.Context, key session.Key, results []NewResult) (stored int64, err error) {
	c := columnsOf(results)
	err = postgres.InTenant(ctx, s.pool, key.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error { return c.insert(ctx, tx, key) })
	var violation *pgconn.PgError
	if errors.As(err, &violation) && violation.Code == "23503" { // foreign_key_violation: the session was erased
		err = fmt.Errorf("session of results: %w", session.ErrNotFound)
	}
	for _, body := range c.bodies {
		stored += int64(len(body))
	}
	return stored, err
}

// PutIn persists results in a transaction of the caller's.
func PutIn(ctx context.Context, tx pgx.Tx, key session.Key, results []NewResult) error {
	c := columnsOf(results)
	return c.insert(ctx, tx, key)
}

// columns are results turned by columns, as unnest takes them.
type columns struct {
	refs, tools, calls, categories, mediaTypes []string
	seqs, bytes, lines, tokens                 []int64
	parts                                      []int32
	sums, bodies                               [][]byte
	codecs                                     []int16
}

func (c *columns) insert(ctx context.Context, tx pgx.Tx, key session.Key) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO result_bodies (tenant_id, session_key, sha256, codec, body)
		SELECT $1, $2, r.sha256, r.codec, r.body
		  FROM unnest($3::bytea[], $4::smallint[], $5::bytea[]) AS r (sha256, codec, body)
		ON CONFLICT DO NOTHING`,
		[16]byte(key.Tenant), [16]byte(key.Key), c.sums, c.codecs, c.bodies)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO results (tenant_id, session_key, ref, seq, part, tool_name, call_id, category, media_type, bytes, lines, tokens, sha256)
		SELECT $1, $2, r.*
		  FROM unnest($3::text[], $4::bigint[], $5::int[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[],
		              $12::bigint[], $13::bytea[]) r
		ON CONFLICT DO NOTHING`,
		[16]byte(key.Tenant), [16]byte(key.Key), c.refs, c.seqs, c.parts, c.tools, c.calls, c.categories, c.mediaTypes, c.bytes, c.lines, c.tokens, c.sums)
	return err
}

func columnsOf(results []NewResult) (c columns) {
	for i := range results {
		r := &results[i]
		codec, body := compress(r.Body)
		c.refs, c.seqs, c.parts = append(c.refs, r.Ref), append(c.seqs, r.Seq), append(c.parts, int32(r.Part))
		c.tools, c.calls = append(c.tools, postgres.Text(r.Tool)), append(c.calls, postgres.Text(r.CallID))
		c.categories, c.mediaTypes = append(c.categories, r.Category), append(c.mediaTypes, r.MediaType)
		c.bytes, c.lines, c.tokens = append(c.bytes, int64(len(r.Body))), append(c.lines, r.Lines), append(c.tokens, r.Tokens)
		c.sums, c.codecs, c.bodies = append(c.sums, r.SHA256[:]), append(c.codecs, codec), append(c.bodies, body)
	}
	return c
}

const resultColumns = `
	r.ref, r.seq, r.part, r.tool_name, r.call_id, r.category, r.media_type, r.bytes, r.lines, r.tokens, r.sha256, r.created_at`

func scanResult(row pgx.CollectableRow) (r Result, err error) {
	var sum []byte
	err = row.Scan(&r.Ref, &r.Seq, &r.Part, &r.Tool, &r.CallID, &r.Category, &r.MediaType, &r.Bytes, &r.Lines, &r.Tokens, &sum, &r.CreatedAt)
	copy(r.SHA256[:], sum)
	return r, err
}

// Place is a place in a session's list of results: what comes after part Part of message Seq.
type Place struct {
	Seq  int64
	Part int
}

// List reads a session's results by seq and part; ErrNotFound if there is no such session.
func (s *Store) List(ctx context.Context, at session.Address, after Place, limit int) (found []Result, err error) {
	err = postgres.InTenant(ctx, s.pool, at.Tenant, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		key, err := postgres.SessionKey(ctx, tx, at)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			SELECT `+resultColumns+`
			  FROM results r
			 WHERE r.tenant_id = $1
			   AND r.session_key = $2
			   AND (r.seq, r.part) > ($3, $4)
			 ORDER BY r.seq, r.part
			 LIMIT $5`, [16]byte(at.Tenant), key, after.Seq, after.Part, limit)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanResult)
		return err
	})
	return found, err
}

// Read brings a result back, whole. A ref that does not exist is ErrNotFound, with the refs of the same message in its
// text: models miscopy, and the check digits make that a miss instead of another result.
func (s *Store) Read(ctx context.Context, at session.Address, ref session.ResultRef) (r Result, body []byte, err error) {
	err = postgres.InTenant(ctx, s.pool, at.Tenant, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		key, err := postgres.SessionKey(ctx, tx, at)
		if err != nil {
			return err
		}
		var sum []byte
		var codec int16
		var stored []byte
		err = tx.QueryRow(ctx, `
			SELECT `+resultColumns+`, b.codec, b.body
			  FROM results r
			  JOIN result_bodies b ON b.tenant_id = r.tenant_id AND b.session_key = r.session_key AND b.sha256 = r.sha256
			 WHERE r.tenant_id = $1 AND r.session_key = $2 AND r.ref = $3`, [16]byte(at.Tenant), key, ref.String()).
			Scan(&r.Ref, &r.Seq, &r.Part, &r.Tool, &r.CallID, &r.Category, &r.MediaType, &r.Bytes, &r.Lines, &r.Tokens, &sum, &r.CreatedAt, &codec, &stored)
		if errors.Is(err, pgx.ErrNoRows) {
			return missing(ctx, tx, at, key, ref)
		}
		if err != nil {
			return err
		}
		copy(r.SHA256[:], sum)
		body, err = decompress(codec, stored, r.Bytes)
		return err
	})
	return r, body, err
}

func missing(ctx context.Context, tx pgx.Tx, at session.Address, key [16]byte, ref session.ResultRef) error {
	rows, err := tx.Query(ctx, `
		SELECT ref
		  FROM results
		 WHERE tenant_id = $1 AND session_key = $2 AND seq = $3
		 ORDER BY part
		 LIMIT 5`, [16]byte(at.Tenant), key, ref.Seq)
	if err != nil {
		return err
	}
	near, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(near) == 0 {
		return fmt.Errorf("result %s: %w", ref, session.ErrNotFound)
	}
	return fmt.Errorf("result %s: %w; message %d has %s", ref, session.ErrNotFound, ref.Seq, strings.Join(near, ", "))
}
