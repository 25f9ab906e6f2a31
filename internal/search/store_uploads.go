package search

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// uploadToIndex is an uploaded result that is not indexed.
type uploadToIndex struct {
	N         int
	Ref       string
	MediaType string
}

// uploadsToIndex returns uploaded results of a session that are not indexed by the rules of a language.
func (s store) uploadsToIndex(
	ctx context.Context, key session.Key, language string, limit int,
) ([]uploadToIndex, error) {
	return postgres.QueryRows(ctx, s.Store, key.Tenant, pgx.RowToStructByPos[uploadToIndex], `
		SELECT n, ref, media_type
		  FROM uploads
		 WHERE tenant_id = $1
		   AND session_key = $2
		   AND finished_at IS NOT NULL
		   AND searched_in IS DISTINCT FROM $3
		 ORDER BY n
		 LIMIT $4`, key.Tenant, key.Key, language, limit)
}

// putUploadIndex stores the passages of an uploaded result, which are not those of all of it if it is indexed in part.
// It does nothing if another worker was there before.
//
// Errors: ErrNotFound if the session is gone.
func (s store) putUploadIndex(
	ctx context.Context, key session.Key, n int, language string, inPart bool, passages []indexedPassage,
) error {
	return postgres.InTenant(ctx, s.Pool(), key.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		err := postgres.ExecOne(ctx, tx, session.ErrNotFound, `
			SELECT
			  FROM sessions
			 WHERE tenant_id = $1 AND key = $2
			   FOR KEY SHARE`, key.Tenant, key.Key) // before its other rows, as whoever erases it does
		if err != nil {
			return err
		}
		err = postgres.ExecOne(ctx, tx, errIndexed, `
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
		err = postgres.Exec(ctx, tx, `
			DELETE FROM search_texts
			 WHERE tenant_id = $1 AND session_key = $2 AND seq = 0 AND piece = $3`, key.Tenant, key.Key, n)
		if err != nil {
			return err
		}
		return insertPassages(ctx, tx, key, language, passages)
	})
}
