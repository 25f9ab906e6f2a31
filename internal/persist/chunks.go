package persist

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist/object"
	"github.com/varve-dev/varve/internal/session"
)

// chunkColumns are chunks by column, as unnest takes them.
type chunkColumns struct {
	ids             []uuid.UUID
	numbers, sizes  []int32
	starts, lines   []int64
	inLine          []bool
	codecs          []int16
	digests, bodies [][]byte
	objects         []*uuid.UUID
	objectsAt       []*int64
	objectSizes     []*int32
}

func (c *chunkColumns) add(body uuid.UUID, chunks []encoded) {
	for i := range chunks {
		chunk := &chunks[i]
		c.ids = append(c.ids, body)
		c.numbers = append(c.numbers, int32(chunk.n))
		c.sizes = append(c.sizes, int32(chunk.Size))
		c.starts = append(c.starts, chunk.At)
		c.lines = append(c.lines, chunk.Line)
		c.inLine = append(c.inLine, chunk.InLine)
		c.codecs = append(c.codecs, chunk.codec)
		c.digests = append(c.digests, chunk.Digest[:])
		c.place(chunk)
	}
}

// place adds where the bytes of a chunk are.
func (c *chunkColumns) place(chunk *encoded) {
	var body []byte
	var at *int64
	var size *int32
	if chunk.object == nil {
		body = append([]byte{}, chunk.stored...) // not nil, which is NULL
	} else {
		at = &chunk.objectAt
		size = new(int32(chunk.size))
	}
	c.bodies = append(c.bodies, body)
	c.objects = append(c.objects, chunk.object)
	c.objectsAt = append(c.objectsAt, at)
	c.objectSizes = append(c.objectSizes, size)
}

// insert stores chunks.
func (c *chunkColumns) insert(ctx context.Context, tx pgx.Tx, key session.Key) error {
	if len(c.ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO result_chunks (tenant_id, session_key, body_id, n, size, at, line, in_line, codec, digest, body,
		                           object, object_at, object_size)
		SELECT $1, $2, c.*
		  FROM unnest($3::uuid[], $4::int[], $5::int[], $6::bigint[], $7::bigint[], $8::boolean[], $9::smallint[],
		              $10::bytea[], $11::bytea[], $12::uuid[], $13::bigint[], $14::int[]) c`,
		key.Tenant, key.Key, c.ids, c.numbers, c.sizes, c.starts, c.lines, c.inLine, c.codecs, c.digests, c.bodies,
		c.objects, c.objectsAt, c.objectSizes)
	return err
}

// Row is where a chunk is.
type Row struct {
	Codec      int16
	Body       []byte // nil if the chunk lies outside
	Store      Kind
	Prefix     uuid.UUID // the session under whose prefix the object lies
	Object     *uuid.UUID
	ObjectAt   *int64
	ObjectSize *int32
}

// Load returns the chunks that rows of a body describe, those outside in as few reads as possible. No transaction may
// be open.
//
// Errors: object.ErrMissing, ErrResultStore.
func (s *Stores) Load(ctx context.Context, tenant uuid.UUID, rows []Row) ([]StoredChunk, error) {
	chunks := make([]StoredChunk, len(rows))
	for i := 0; i < len(rows); {
		run := adjacent(rows[i:])
		if rows[i].Object == nil {
			chunks[i] = StoredChunk{Codec: rows[i].Codec, Bytes: rows[i].Body}
		} else if err := s.load(ctx, tenant, rows[i:i+run], chunks[i:]); err != nil {
			return nil, err
		}
		i += run
	}
	return chunks, nil
}

// adjacent returns how many rows at the beginning lie side by side in one object, at least 1.
func adjacent(rows []Row) int {
	n := 1
	for n < len(rows) && rows[0].Object != nil && rows[n].Object != nil && *rows[n].Object == *rows[0].Object &&
		*rows[n].ObjectAt == *rows[n-1].ObjectAt+int64(*rows[n-1].ObjectSize) {
		n++
	}
	return n
}

// load reads rows that lie side by side.
func (s *Stores) load(ctx context.Context, tenant uuid.UUID, rows []Row, chunks []StoredChunk) error {
	store, err := s.Store(rows[0].Store)
	if err != nil {
		return err
	}
	at, size := *rows[0].ObjectAt, 0
	for i := range rows {
		size += int(*rows[i].ObjectSize)
	}
	key := session.Key{Tenant: tenant, Key: rows[0].Prefix}
	found, err := store.Get(ctx, ObjectName(key, *rows[0].Object), at, size)
	if err != nil {
		return err
	}
	for i := range rows {
		n := min(int(*rows[i].ObjectSize), len(found)) // an object that was cut is found by the digest
		chunks[i] = StoredChunk{Codec: rows[i].Codec, Bytes: found[:n]}
		found = found[n:]
	}
	return nil
}

// IsMissing reports whether an object was not there that a row named: a move may have deleted it since.
func IsMissing(err error) bool { return errors.Is(err, object.ErrMissing) }
