package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// ExpireUploads deletes the uploads that were given up: those of one session, or of all.
func ExpireUploads(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, of *uuid.UUID) error {
	return Exec(ctx, tx, `
		DELETE FROM uploads u
		 USING result_bodies b
		 WHERE u.tenant_id = $1
		   AND ($2::uuid IS NULL OR u.session_key = $2)
		   AND u.finished_at IS NULL
		   AND b.tenant_id = u.tenant_id
		   AND b.session_key = u.session_key
		   AND b.id = u.body_id
		   AND b.touched_at <= now() - $3::interval`, tenant, of, session.UploadLifetime)
}

// UploadedText is an uploaded result that a message may have the text of.
type UploadedText struct {
	Ref, CallID string
	TextDigest  []byte // the digest of that text
}

// uploadedTexts reads the uploaded results of a session whose texts do not have all of them.
func uploadedTexts(ctx context.Context, tx pgx.Tx, key session.Key) ([]UploadedText, error) {
	return RowsIn(ctx, tx, pgx.RowToStructByPos[UploadedText], `
		SELECT ref, call_id, shown_sha256
		  FROM uploads
		 WHERE tenant_id = $1 AND session_key = $2 AND shown_sha256 IS NOT NULL
		 ORDER BY n`, key.Tenant, key.Key)
}

// UploadedResults lists the uploaded results of a session by their numbers.
func (s *Store) UploadedResults(ctx context.Context, key session.Key) ([]persist.Result, error) {
	return QueryRows(ctx, s, key.Tenant, pgx.RowToStructByName[persist.Result], `
		SELECT `+persist.ResultColumns+`
		  FROM results r
		 WHERE r.tenant_id = $1 AND r.session_key = $2 AND r.seq = 0
		 ORDER BY r.part`, key.Tenant, key.Key)
}
