package persist

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Movable is a complete body that lies elsewhere than it shall.
type Movable struct {
	Session uuid.UUID
	ID      uuid.UUID
	Store   Kind
	Bytes   int64
}

// MovableBodies returns bodies of a tenant, or of one session if it is given, that do not lie in a store, by session
// and id after one of them.
func MovableBodies(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, of *uuid.UUID, to Kind, after Movable, limit int,
) ([]Movable, error) {
	return rowsOf(ctx, tx, pgx.RowToStructByPos[Movable], `
		SELECT session_key, id, store, bytes
		  FROM result_bodies
		 WHERE tenant_id = $1 AND sha256 IS NOT NULL AND held_in IS NULL AND store <> $2
		   AND (session_key, id) > ($3, $4)
		   AND ($5::uuid IS NULL OR session_key = $5)
		 ORDER BY session_key, id
		 LIMIT $6`, tenant, to, after.Session, after.ID, of, limit)
}

// MoveChunks is how many chunks are moved at once: as many as an object has.
const MoveChunks = objectChunks

// Moving is a part of a body on its way to another store.
type Moving struct {
	chunks []encoded
}

// Copy reads chunks of a content from number first on as they are stored, verifies them, and puts them into a store,
// where they are verified again. No transaction may be open.
//
// Errors: DamagedError: what is damaged is not moved.
func (s *Stores) Copy(ctx context.Context, key session.Key, c *Content, first int, fetch Fetch, to Kind) (
	m Moving, err error,
) {
	limit := min(MoveChunks, len(c.chunks)-first)
	stored, err := fetch(ctx, first, limit)
	if err != nil {
		return m, err
	}
	if len(stored) != limit {
		return m, c.damaged(errMissing)
	}
	for i := range stored {
		if _, err := c.decode(first+i, stored[i].Codec, stored[i].Bytes); err != nil {
			return m, err
		}
		m.chunks = append(m.chunks, encoded{
			Chunk: c.chunks[first+i], n: first + i, codec: stored[i].Codec, stored: stored[i].Bytes,
		})
	}
	return m, s.putChunks(ctx, key, to, m.chunks)
}

// Stored returns how many bytes were copied.
func (m *Moving) Stored() (bytes int64) {
	for i := range m.chunks {
		bytes += int64(len(m.chunks[i].stored))
	}
	return bytes
}

// Objects returns the objects that were put.
func (m *Moving) Objects() []uuid.UUID {
	ids := make([]*uuid.UUID, len(m.chunks))
	for i := range m.chunks {
		ids[i] = m.chunks[i].object
	}
	return distinct(ids)
}

// Lean forgets the bytes of what lies outside now: only where they are is needed to switch.
func (m *Moving) Lean() {
	for i := range m.chunks {
		if m.chunks[i].object != nil {
			m.chunks[i].stored = nil
		}
	}
}

// LockMoving locks a body that is being moved; ErrNotFound if it is gone or lies elsewhere by now.
func LockMoving(ctx context.Context, tx pgx.Tx, key session.Key, body Movable) error {
	tag, err := tx.Exec(ctx, `
		SELECT
		  FROM result_bodies
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND store = $4
		   FOR NO KEY UPDATE`, key.Tenant, key.Key, body.ID, body.Store)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("body %s: %w", body.ID, session.ErrNotFound)
	}
	return err
}

// Switch makes the rows of chunks of a body that is locked name the place to which they were copied, and returns the
// objects that they named before.
func (m *Moving) Switch(ctx context.Context, tx pgx.Tx, key session.Key, body uuid.UUID) ([]uuid.UUID, error) {
	var c chunkColumns
	c.add(body, m.chunks)
	old, err := rowsOf(ctx, tx, pgx.RowTo[*uuid.UUID], `
		SELECT object
		  FROM result_chunks
		 WHERE tenant_id = $1 AND session_key = $2 AND body_id = $3 AND n = ANY ($4)
		 ORDER BY n`, key.Tenant, key.Key, body, c.numbers)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `
		UPDATE result_chunks c
		   SET body = p.body, object = p.object, object_at = p.object_at, object_size = p.object_size
		  FROM unnest($4::int[], $5::bytea[], $6::uuid[], $7::bigint[], $8::int[])
		       p (n, body, object, object_at, object_size)
		 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.body_id = $3 AND c.n = p.n`,
		key.Tenant, key.Key, body, c.numbers, c.bodies, c.objects, c.objectsAt, c.objectSizes)
	return distinct(old), err
}

// SetStore notes where a body lies that is locked and whose chunks are all switched: objects are under its own prefix
// now.
func SetStore(ctx context.Context, tx pgx.Tx, key session.Key, body uuid.UUID, to Kind) error {
	_, err := tx.Exec(ctx, `
		UPDATE result_bodies
		   SET store = $4, objects_in = NULL
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3`, key.Tenant, key.Key, body, to)
	return err
}

// Stat is what lies in a store.
type Stat struct {
	Store  Kind
	Bodies int64
	Bytes  int64 // of the bodies
	Stored int64 // of their chunks, compressed
}

// Stats returns what a tenant, or one session if it is given, has in each store. Bodies that are being written count;
// those that a fork shares count where they are held.
func Stats(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, of *uuid.UUID) ([]Stat, error) {
	return rowsOf(ctx, tx, pgx.RowToStructByPos[Stat], `
		SELECT b.store, count(*), coalesce(sum(b.bytes), 0)::bigint, coalesce(sum(c.stored), 0)::bigint
		  FROM result_bodies b
		  LEFT JOIN LATERAL (
		       SELECT sum(coalesce(object_size, octet_length(body))) AS stored
		         FROM result_chunks
		        WHERE tenant_id = b.tenant_id AND session_key = b.session_key AND body_id = b.id) c ON true
		 WHERE b.tenant_id = $1 AND b.held_in IS NULL AND ($2::uuid IS NULL OR b.session_key = $2)
		 GROUP BY b.store
		 ORDER BY b.store`, tenant, of)
}
