package upload

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// uploadSQL reads uploads that have not expired: {where} says which.
const uploadSQL = `
	SELECT u.session_key, u.id, u.n, u.body_id, u.tool, u.call_id, u.media_type, u.expected, b.bytes,
	       b.sha256 IS NOT NULL, coalesce(u.ref, ''), u.shown, u.created_at,
	       b.touched_at + $3::interval, u.finished_at, coalesce(u.key, '')
	  FROM uploads u
	  JOIN result_bodies b ON b.tenant_id = u.tenant_id AND b.session_key = u.session_key AND b.id = u.body_id
	 WHERE u.tenant_id = $1
	   AND u.session_key = $2
	   AND (u.finished_at IS NOT NULL OR b.touched_at > now() - $3::interval)`

// store has the SQL of uploads.
type store struct{ *postgres.Store }

// storedUpload is an upload with its Idempotency-Key.
type storedUpload struct {
	Upload
	key string
}

func scanUpload(row pgx.CollectableRow) (u storedUpload, err error) {
	var text []byte
	err = row.Scan(&u.Session.Key, &u.ID, &u.N, &u.Body, &u.Tool, &u.CallID, &u.MediaType, &u.Expected, &u.Offset,
		&u.Whole, &u.Ref, &text, &u.CreatedAt, &u.ExpiresAt, &u.FinishedAt, &u.key)
	u.Text = string(text)
	return u, err
}

// begin begins an upload to a session, or finds the one that has this Idempotency-Key.
//
// Errors: ErrNotFound, errTooMany, ErrIdempotencyReused if the upload of this key is another.
func (s store) begin(ctx context.Context, at session.Address, n begun) (Upload, error) {
	turn, err := s.TurnToWrite(ctx, at)
	if err != nil {
		return Upload{}, err
	}
	defer turn.Done()
	return postgres.InTx(ctx, s.Store, at.Tenant, func(tx pgx.Tx) (u Upload, err error) {
		key, err := postgres.LockSession(ctx, tx, at)
		if err != nil {
			return u, err
		}
		if err := postgres.ExpireUploads(ctx, tx, at.Tenant, &key.Key); err != nil {
			return u, err
		}
		found, err := postgres.RowsIn(ctx, tx, scanUpload, uploadSQL+` AND u.key = nullif($4, '')`,
			at.Tenant, key.Key, session.UploadLifetime, n.Key)
		if err != nil {
			return u, err
		}
		if len(found) > 0 {
			u = found[0].Upload
			u.Session.Tenant = at.Tenant
			if !sameUpload(&u, &n) {
				err = fmt.Errorf("Idempotency-Key %q: %w", n.Key, session.ErrIdempotencyReused)
			}
			return u, err
		}
		return s.insert(ctx, tx, key, n)
	})
}

// sameUpload reports whether an upload was begun by an equal request.
func sameUpload(u *Upload, n *begun) bool {
	return u.Tool == n.Tool && u.CallID == n.CallID && u.MediaType == n.MediaType && bytes.Equal(u.Expected, n.SHA256)
}

// insert inserts an upload to a session that is locked.
func (s store) insert(ctx context.Context, tx pgx.Tx, key session.Key, n begun) (u Upload, err error) {
	var open, last int
	err = tx.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE finished_at IS NULL), coalesce(max(n), 0)
		  FROM uploads
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key).Scan(&open, &last)
	if err == nil && open >= session.MaxUploads {
		err = tooMany(sessionFull)
	}
	if err != nil {
		return u, err
	}
	body, err := persist.NewBody(ctx, tx, key, s.ResultStores().New)
	if err != nil {
		return u, err
	}
	id := uuid.Must(uuid.NewV7())
	err = postgres.Exec(ctx, tx, `
		INSERT INTO uploads (tenant_id, session_key, id, n, body_id, key, tool, call_id, media_type, expected)
		VALUES ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9, $10)`,
		key.Tenant, key.Key, id, last+1, body, n.Key, n.Tool, n.CallID, n.MediaType, n.SHA256)
	if err != nil {
		return u, err
	}
	return readUpload(ctx, tx, key, id)
}

// read reads an upload; ErrNotFound, also for one that has expired.
func (s store) read(ctx context.Context, at session.Address, id uuid.UUID) (Upload, error) {
	return postgres.InSession(ctx, s.Store, at, func(tx pgx.Tx, key session.Key) (Upload, error) {
		return readUpload(ctx, tx, key, id)
	})
}

func readUpload(ctx context.Context, tx pgx.Tx, key session.Key, id uuid.UUID) (Upload, error) {
	u, err := postgres.RowIn(ctx, tx, scanUpload, uploadSQL+` AND u.id = $4`, key.Tenant, key.Key,
		session.UploadLifetime, id)
	u.Session.Tenant = key.Tenant
	if err != nil {
		err = fmt.Errorf("upload %s: %w", id, err)
	}
	return u.Upload, err
}

// complete stores the last bytes of an upload. The session may have had an equal body before, which is the
// upload's then.
//
// Errors: digestError, ErrWritten, ErrNotFound.
func (s store) complete(ctx context.Context, u Upload, w *postgres.BodyWriter) (Upload, error) {
	_, _, err := w.Complete(ctx, func(tx pgx.Tx, id uuid.UUID, whole persist.Body) error {
		if u.Expected != nil && !bytes.Equal(u.Expected, whole.SHA256[:]) {
			return &digestError{Want: u.Expected, Got: whole.SHA256[:]}
		}
		return postgres.ExecOne(ctx, tx, session.ErrNotFound, `
			UPDATE uploads
			   SET body_id = $4
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3`, u.Session.Tenant, u.Session.Key, u.ID, id)
	})
	if err != nil {
		return u, err
	}
	return postgres.InTx(ctx, s.Store, u.Session.Tenant, func(tx pgx.Tx) (Upload, error) {
		return readUpload(ctx, tx, u.Session, u.ID)
	})
}

// finish makes an upload whose bytes are stored a result of its session, with the text that stands for it in a
// message and the line of it that names the result. One that is finished stays as it is.
//
// Errors: ErrNotFound.
func (s store) finish(ctx context.Context, u Upload, r persist.Result, text string, sum []byte) (Upload, error) {
	key := u.Session
	return postgres.InTx(ctx, s.Store, key.Tenant, func(tx pgx.Tx) (Upload, error) {
		err := postgres.Exec(ctx, tx, `
			UPDATE uploads
			   SET ref = $4, shown = $5, shown_sha256 = $6, finished_at = now()
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND finished_at IS NULL`,
			key.Tenant, key.Key, u.ID, r.Ref, []byte(text), sum)
		if err != nil {
			return u, err
		}
		err = postgres.Exec(ctx, tx, `
			INSERT INTO results (tenant_id, session_key, ref, seq, part, tool_name, call_id, category, media_type,
			                     bytes, lines, tokens, sha256, body_id)
			SELECT $1, $2, u.ref, 0, u.n, u.tool, u.call_id, $4, u.media_type, $5, $6, $7, $8, u.body_id
			  FROM uploads u
			 WHERE u.tenant_id = $1 AND u.session_key = $2 AND u.id = $3
			ON CONFLICT DO NOTHING`,
			key.Tenant, key.Key, u.ID, r.Category, r.Bytes, r.Lines, r.Tokens, r.SHA256)
		if err != nil {
			return u, err
		}
		return readUpload(ctx, tx, key, u.ID)
	})
}

// abandon gives an upload up: what has arrived is collected later. ErrNotFound, errEnded.
func (s store) abandon(ctx context.Context, at session.Address, id uuid.UUID) error {
	_, err := postgres.ChangeInSession(ctx, s.Store, at, func(tx pgx.Tx, key session.Key) (struct{}, error) {
		u, err := readUpload(ctx, tx, key, id)
		if err == nil && u.Finished() {
			err = errEnded
		}
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, postgres.Exec(ctx, tx, `
			DELETE FROM uploads
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND finished_at IS NULL`, key.Tenant, key.Key, id)
	})
	return err
}
