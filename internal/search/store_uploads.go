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

// uploadsToIndex returns uploaded results of a session that are not indexed by some rules.
func (s store) uploadsToIndex(ctx context.Context, key session.Key, by rules, limit int) ([]uploadToIndex, error) {
	return postgres.QueryRows(ctx, s.Store, key.Tenant, pgx.RowToStructByPos[uploadToIndex], `
		SELECT n, ref, media_type
		  FROM uploads
		 WHERE tenant_id = $1
		   AND session_key = $2
		   AND finished_at IS NOT NULL
		   AND searched_in IS DISTINCT FROM $3
		 ORDER BY n
		 LIMIT $4`, key.Tenant, key.Key, by, limit)
}

// uploadNumbered returns an uploaded result by its number, and the id of its session; ErrNotFound.
func (s store) uploadNumbered(ctx context.Context, key session.Key, n int) (id string, u *uploadToIndex, err error) {
	type row struct {
		Session string
		Upload  uploadToIndex
	}
	found, err := postgres.QueryRow(ctx, s.Store, key.Tenant, func(r pgx.CollectableRow) (f row, err error) {
		err = r.Scan(&f.Session, &f.Upload.N, &f.Upload.Ref, &f.Upload.MediaType)
		return f, err
	}, `
		SELECT s.id, u.n, u.ref, u.media_type
		  FROM uploads u
		  JOIN sessions s ON s.tenant_id = u.tenant_id AND s.key = u.session_key
		 WHERE u.tenant_id = $1 AND u.session_key = $2 AND u.n = $3 AND u.finished_at IS NOT NULL`,
		key.Tenant, key.Key, n)
	return found.Session, &found.Upload, err
}

// putUploadIndex stores the blocks of an uploaded result, which do not have all of it if it is indexed in part. It does
// nothing if another worker was there before.
//
// Errors: ErrNotFound if the session is gone.
func (s store) putUploadIndex(
	ctx context.Context, key session.Key, n int, by rules, inPart bool, blocks []block,
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
			key.Tenant, key.Key, n, by, inPart)
		if errors.Is(err, errIndexed) {
			return nil
		}
		if err != nil {
			return err
		}
		err = postgres.Exec(ctx, tx, `
			DELETE FROM search_blocks
			 WHERE tenant_id = $1 AND session_key = $2 AND first_seq = 0 AND n / $4::int = $3`,
			key.Tenant, key.Key, n, uploadPassages)
		if err != nil {
			return err
		}
		return insertBlocks(ctx, tx, key, blocks)
	})
}
