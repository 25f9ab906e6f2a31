// Package persist keeps full tool results, so that a view can name them instead of holding them. It owns the tables
// results and result_bodies; every function runs in a transaction of its caller's.
//
// Start at Put, which must be called before a checkpoint that names the results is committed, and Read, which brings
// one back.
package persist

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/session"
)

// Result is what is known of a persisted result without its body.
type Result struct {
	Ref       string
	Seq       int64
	Part      int
	Tool      string // as PostgreSQL's text can hold it
	CallID    string // as PostgreSQL's text can hold it
	Category  string
	MediaType string
	Bytes     int64
	Lines     int64
	Tokens    int64
	SHA256    []byte // of the body
	CreatedAt time.Time
}

// NewResult is a result to persist.
type NewResult struct {
	Result
	Body []byte
}

// Batches splits results into runs that one transaction each should carry.
func Batches(results []NewResult) iter.Seq[[]NewResult] {
	return func(yield func([]NewResult) bool) {
		for len(results) > 0 {
			n, size := 0, 0
			for n < len(results) && (n == 0 || size+len(results[n].Body) <= batchBytes) {
				size += len(results[n].Body)
				n++
			}
			if !yield(results[:n]) {
				return
			}
			results = results[n:]
		}
	}
}

// batchBytes bounds what one transaction carries.
const batchBytes = 8 << 20

// Put persists results of a session. A result that is there already stays as it is, so a compaction that was
// interrupted simply puts again. stored is the number of bytes that the compressed bodies have.
func Put(ctx context.Context, tx pgx.Tx, key session.Key, results []NewResult) (stored int64, err error) {
	c := columnsOf(results)
	for _, body := range c.bodies {
		stored += int64(len(body))
	}
	return stored, c.insert(ctx, tx, key)
}

// columns are results by column, as unnest takes them.
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
		key.Tenant, key.Key, c.sums, c.codecs, c.bodies)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO results (tenant_id, session_key, ref, seq, part, tool_name, call_id, category, media_type, bytes,
		                     lines, tokens, sha256)
		SELECT $1, $2, r.*
		  FROM unnest($3::text[], $4::bigint[], $5::int[], $6::text[], $7::text[], $8::text[], $9::text[],
		              $10::bigint[], $11::bigint[], $12::bigint[], $13::bytea[]) r
		ON CONFLICT DO NOTHING`,
		key.Tenant, key.Key, c.refs, c.seqs, c.parts, c.tools, c.calls, c.categories, c.mediaTypes,
		c.bytes, c.lines, c.tokens, c.sums)
	return err
}

func columnsOf(results []NewResult) (c columns) {
	for i := range results {
		r := &results[i]
		codec, body := compress(r.Body)
		c.refs = append(c.refs, r.Ref)
		c.seqs = append(c.seqs, r.Seq)
		c.parts = append(c.parts, int32(r.Part))
		c.tools = append(c.tools, r.Tool)
		c.calls = append(c.calls, r.CallID)
		c.categories = append(c.categories, r.Category)
		c.mediaTypes = append(c.mediaTypes, r.MediaType)
		c.bytes = append(c.bytes, int64(len(r.Body)))
		c.lines = append(c.lines, r.Lines)
		c.tokens = append(c.tokens, r.Tokens)
		c.sums = append(c.sums, r.SHA256)
		c.codecs = append(c.codecs, codec)
		c.bodies = append(c.bodies, body)
	}
	return c
}

const resultColumns = `
	r.ref, r.seq, r.part, r.tool_name AS tool, r.call_id, r.category, r.media_type, r.bytes, r.lines, r.tokens,
	r.sha256, r.created_at`

// Place is a place in a session's list of results: what comes after part Part of message Seq.
type Place struct {
	Seq  int64
	Part int
}

// List reads a session's results by seq and part.
func List(ctx context.Context, tx pgx.Tx, key session.Key, after Place, limit int) ([]Result, error) {
	rows, err := tx.Query(ctx, `
		SELECT `+resultColumns+`
		  FROM results r
		 WHERE r.tenant_id = $1
		   AND r.session_key = $2
		   AND (r.seq, r.part) > ($3, $4)
		 ORDER BY r.seq, r.part
		 LIMIT $5`, key.Tenant, key.Key, after.Seq, after.Part, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Result])
}

// Read returns a result and its whole body; ErrNotFound for a ref that does not exist. The check digits make a
// miscopied ref a miss instead of another result.
func Read(ctx context.Context, tx pgx.Tx, key session.Key, ref session.ResultRef) (r Result, body []byte, err error) {
	rows, err := tx.Query(ctx, `
		SELECT `+resultColumns+`, b.codec, b.body
		  FROM results r
		  JOIN result_bodies b ON b.tenant_id = r.tenant_id AND b.session_key = r.session_key AND b.sha256 = r.sha256
		 WHERE r.tenant_id = $1 AND r.session_key = $2 AND r.ref = $3`,
		key.Tenant, key.Key, ref.String())
	if err != nil {
		return r, nil, err
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[stored])
	if errors.Is(err, pgx.ErrNoRows) {
		return r, nil, fmt.Errorf("result %s: %w", ref, session.ErrNotFound)
	}
	if err != nil {
		return r, nil, err
	}
	body, err = decompress(found.Codec, found.Body, found.Bytes)
	return found.Result, body, err
}

// stored is a result with its body as it is stored.
type stored struct {
	Result
	Codec int16
	Body  []byte
}

// Nearest returns the refs of the results nearest to message seq.
func Nearest(ctx context.Context, tx pgx.Tx, key session.Key, seq int64, limit int) ([]string, error) {
	rows, err := tx.Query(ctx, `
		SELECT ref
		  FROM (( SELECT ref, seq, part
		            FROM results
		           WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3
		           ORDER BY seq, part
		           LIMIT $4)
		        UNION ALL
		        (SELECT ref, seq, part
		           FROM results
		          WHERE tenant_id = $1 AND session_key = $2 AND seq < $3
		          ORDER BY seq DESC, part DESC
		          LIMIT $4)) near
		 ORDER BY abs(seq - $3), part
		 LIMIT $4`, key.Tenant, key.Key, seq, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// The codecs of result_bodies.codec.
const (
	codecRaw  int16 = 0
	codecZstd int16 = 1
)

var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<30))
)

// compress returns the smaller of a body and its compressed form.
func compress(body []byte) (codec int16, stored []byte) {
	packed := encoder.EncodeAll(body, nil)
	if len(packed) < len(body) {
		return codecZstd, packed
	}
	if body == nil {
		body = []byte{}
	}
	return codecRaw, body
}

func decompress(codec int16, stored []byte, size int64) ([]byte, error) {
	switch codec {
	case codecRaw:
		return stored, nil
	case codecZstd:
		return decoder.DecodeAll(stored, make([]byte, 0, size))
	}
	return nil, fmt.Errorf("result body with codec %d: this version knows 0 and 1", codec)
}
