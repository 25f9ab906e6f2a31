package persist

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// AuditedBody is the row of a body, with what names it.
type AuditedBody struct {
	ID     uuid.UUID
	SHA256 []byte // nil while it is being written
	Bytes  int64
	Lines  int64
	Idle   float64  // seconds since it was written to
	Refs   []string // of the results that have it
}

// AuditBodies reads the rows of a session's bodies behind an id.
func AuditBodies(ctx context.Context, tx pgx.Tx, key session.Key, after uuid.UUID, limit int) ([]AuditedBody, error) {
	rows, err := tx.Query(ctx, `
		SELECT b.id, b.sha256, b.bytes, b.lines, extract(epoch FROM now() - b.touched_at)::float8 AS idle,
		       ARRAY (SELECT r.ref
		                FROM results r
		               WHERE r.tenant_id = $1 AND r.session_key = $2 AND r.body_id = b.id
		               ORDER BY r.seq, r.part) AS refs
		  FROM result_bodies b
		 WHERE b.tenant_id = $1 AND b.session_key = $2 AND b.id > $3
		 ORDER BY b.id
		 LIMIT $4`, key.Tenant, key.Key, after, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[AuditedBody])
}

// Rewrite puts content in the place of a body's chunks. A body that a fork shared is its own then. content must
// be what the body was: its SHA-256 tells.
func Rewrite(ctx context.Context, tx pgx.Tx, key session.Key, id uuid.UUID, content []byte) error {
	made := newBodyOf(content)
	tag, err := tx.Exec(ctx, `
		UPDATE result_bodies
		   SET bytes = $4, lines = $5, store = 0, held_in = NULL, objects_in = NULL
		 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND sha256 = $6`,
		key.Tenant, key.Key, id, made.Bytes, made.Lines, made.SHA256[:])
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("body %s with this SHA-256: %w", id, session.ErrNotFound)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		DELETE FROM result_chunks
		 WHERE tenant_id = $1 AND session_key = $2 AND body_id = $3`, key.Tenant, key.Key, id)
	if err != nil {
		return err
	}
	var chunks chunkColumns
	chunks.add(id, made.chunks)
	return chunks.insert(ctx, tx, key)
}
