package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// UploadToIndex is an uploaded result that is not indexed.
type UploadToIndex struct {
	N         int
	Ref       string
	MediaType string
}

// UploadsToIndex returns uploaded results of a session that are not indexed by the rules of a language.
func (s *Store) UploadsToIndex(
	ctx context.Context, key session.Key, language string, limit int,
) ([]UploadToIndex, error) {
	return queryRows(ctx, s, key.Tenant, pgx.RowToStructByPos[UploadToIndex], `
		SELECT n, ref, media_type
		  FROM uploads
		 WHERE tenant_id = $1
		   AND session_key = $2
		   AND finished_at IS NOT NULL
		   AND searched_in IS DISTINCT FROM $3
		 ORDER BY n
		 LIMIT $4`, key.Tenant, key.Key, language, limit)
}

// PutUploadIndex stores the passages of an uploaded result, which are not those of all of it if it is indexed in part.
// It does nothing if another worker was there before.
//
// Errors: ErrNotFound if the session is gone.
func (s *Store) PutUploadIndex(
	ctx context.Context, key session.Key, n int, language string, inPart bool, passages []IndexedPassage,
) error {
	return s.inTenant(ctx, key.Tenant, func(tx pgx.Tx) error {
		err := execOne(ctx, tx, session.ErrNotFound, `
			SELECT
			  FROM sessions
			 WHERE tenant_id = $1 AND key = $2
			   FOR KEY SHARE`, key.Tenant, key.Key) // before its other rows, as whoever erases it does
		if err != nil {
			return err
		}
		err = execOne(ctx, tx, errIndexed, `
			UPDATE uploads
			   SET searched_in = $4, searched_in_part = $5
			 WHERE tenant_id = $1 AND session_key = $2 AND n = $3 AND searched_in IS DISTINCT FROM $4`,
			key.Tenant, key.Key, n, language, inPart)
		if errors.Is(err, errIndexed) {
			return nil
		}
		if err != nil {
			return err
		}
		err = exec(ctx, tx, `
			DELETE FROM search_texts
			 WHERE tenant_id = $1 AND session_key = $2 AND seq = 0 AND piece = $3`, key.Tenant, key.Key, n)
		if err != nil {
			return err
		}
		return insertPassages(ctx, tx, key, language, passages)
	})
}
