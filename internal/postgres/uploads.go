package postgres

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
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

// storedUpload is an upload with its Idempotency-Key.
type storedUpload struct {
	session.Upload
	key string
}

func scanUpload(row pgx.CollectableRow) (u storedUpload, err error) {
	var text []byte
	err = row.Scan(&u.Session.Key, &u.ID, &u.N, &u.Body, &u.Tool, &u.CallID, &u.MediaType, &u.Expected, &u.Offset,
		&u.Whole, &u.Ref, &text, &u.CreatedAt, &u.ExpiresAt, &u.FinishedAt, &u.key)
	u.Text = string(text)
	return u, err
}

// BeginUpload begins an upload to a session, or finds the one that has this Idempotency-Key.
//
// Errors: ErrNotFound, ErrTooManyUploads, ErrIdempotencyReused if the upload of this key is another.
func (s *Store) BeginUpload(ctx context.Context, at session.Address, n session.NewUpload) (session.Upload, error) {
	pen, err := s.turnToWrite(ctx, at)
	if err != nil {
		return session.Upload{}, err
	}
	defer pen.Done()
	return inTx(ctx, s, at.Tenant, func(tx pgx.Tx) (u session.Upload, err error) {
		row, err := lockSession(ctx, tx, at)
		if err != nil {
			return u, err
		}
		if err := expireUploads(ctx, tx, at.Tenant, &row.Key.Key); err != nil {
			return u, err
		}
		found, err := rowsIn(ctx, tx, scanUpload, uploadSQL+` AND u.key = nullif($4, '')`,
			at.Tenant, row.Key.Key, session.UploadLifetime, n.Key)
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
		return s.insertUpload(ctx, tx, row.Key, n)
	})
}

// sameUpload reports whether an upload was begun by an equal request.
func sameUpload(u *session.Upload, n *session.NewUpload) bool {
	return u.Tool == n.Tool && u.CallID == n.CallID && u.MediaType == n.MediaType && bytes.Equal(u.Expected, n.SHA256)
}

// insertUpload inserts an upload to a session that is locked.
func (s *Store) insertUpload(ctx context.Context, tx pgx.Tx, key session.Key, n session.NewUpload) (
	u session.Upload, err error,
) {
	var open, last int
	err = tx.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE finished_at IS NULL), coalesce(max(n), 0)
		  FROM uploads
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key).Scan(&open, &last)
	if err == nil && open >= session.MaxUploads {
		err = session.ErrTooManyUploads
	}
	if err != nil {
		return u, err
	}
	body, err := persist.NewBody(ctx, tx, key, s.results.New)
	if err != nil {
		return u, err
	}
	id := uuid.Must(uuid.NewV7())
	err = exec(ctx, tx, `
		INSERT INTO uploads (tenant_id, session_key, id, n, body_id, key, tool, call_id, media_type, expected)
		VALUES ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9, $10)`,
		key.Tenant, key.Key, id, last+1, body, n.Key, n.Tool, n.CallID, n.MediaType, n.SHA256)
	if err != nil {
		return u, err
	}
	return readUpload(ctx, tx, key, id)
}

// Upload reads an upload; ErrNotFound, also for one that has expired.
func (s *Store) Upload(ctx context.Context, at session.Address, id uuid.UUID) (session.Upload, error) {
	return inSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (session.Upload, error) {
		return readUpload(ctx, tx, key, id)
	})
}

func readUpload(ctx context.Context, tx pgx.Tx, key session.Key, id uuid.UUID) (session.Upload, error) {
	u, err := rowIn(ctx, tx, scanUpload, uploadSQL+` AND u.id = $4`, key.Tenant, key.Key, session.UploadLifetime, id)
	u.Session.Tenant = key.Tenant
	if err != nil {
		err = fmt.Errorf("upload %s: %w", id, err)
	}
	return u.Upload, err
}

// CompleteUpload stores the last bytes of an upload. The session may have had an equal body before, which is the
// upload's then.
//
// Errors: DigestError, ErrWritten, ErrNotFound.
func (s *Store) CompleteUpload(ctx context.Context, u session.Upload, w *BodyWriter) (session.Upload, error) {
	_, _, err := w.Complete(ctx, func(tx pgx.Tx, id uuid.UUID, whole persist.Body) error {
		if u.Expected != nil && !bytes.Equal(u.Expected, whole.SHA256[:]) {
			return &session.DigestError{Want: u.Expected, Got: whole.SHA256[:]}
		}
		return execOne(ctx, tx, session.ErrNotFound, `
			UPDATE uploads
			   SET body_id = $4
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3`, u.Session.Tenant, u.Session.Key, u.ID, id)
	})
	if err != nil {
		return u, err
	}
	return inTx(ctx, s, u.Session.Tenant, func(tx pgx.Tx) (session.Upload, error) {
		return readUpload(ctx, tx, u.Session, u.ID)
	})
}

// FinishUpload makes an upload whose bytes are stored a result of its session, with the text that stands for it in a
// message and the line of it that names the result. One that is finished stays as it is.
//
// Errors: ErrNotFound.
func (s *Store) FinishUpload(ctx context.Context, u session.Upload, r persist.Result, text, mark string) (
	session.Upload, error,
) {
	key := u.Session
	return inTx(ctx, s, key.Tenant, func(tx pgx.Tx) (session.Upload, error) {
		err := exec(ctx, tx, `
			UPDATE uploads
			   SET ref = $4, shown = $5, mark = $6, finished_at = now()
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND finished_at IS NULL`,
			key.Tenant, key.Key, u.ID, r.Ref, []byte(text), mark)
		if err != nil {
			return u, err
		}
		err = exec(ctx, tx, `
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

// AbandonUpload gives an upload up: what has arrived is collected later. ErrNotFound, ErrUploadEnded.
func (s *Store) AbandonUpload(ctx context.Context, at session.Address, id uuid.UUID) error {
	_, err := changeInSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (struct{}, error) {
		u, err := readUpload(ctx, tx, key, id)
		if err == nil && u.Finished() {
			err = session.ErrUploadEnded
		}
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, exec(ctx, tx, `
			DELETE FROM uploads
			 WHERE tenant_id = $1 AND session_key = $2 AND id = $3 AND finished_at IS NULL`, key.Tenant, key.Key, id)
	})
	return err
}

// expireUploads deletes the uploads that were given up: those of one session, or of all.
func expireUploads(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, of *uuid.UUID) error {
	return exec(ctx, tx, `
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
type UploadedText struct{ Ref, CallID, Mark string }

// uploadedTexts reads the uploaded results of a session whose texts name them.
func uploadedTexts(ctx context.Context, tx pgx.Tx, key session.Key) ([]UploadedText, error) {
	return rowsIn(ctx, tx, pgx.RowToStructByPos[UploadedText], `
		SELECT ref, call_id, mark
		  FROM uploads
		 WHERE tenant_id = $1 AND session_key = $2 AND mark <> ''
		 ORDER BY n`, key.Tenant, key.Key)
}

// UploadedResults lists the uploaded results of a session by their numbers.
func (s *Store) UploadedResults(ctx context.Context, key session.Key) ([]persist.Result, error) {
	return queryRows(ctx, s, key.Tenant, pgx.RowToStructByName[persist.Result], `
		SELECT `+persist.ResultColumns+`
		  FROM results r
		 WHERE r.tenant_id = $1 AND r.session_key = $2 AND r.seq = 0
		 ORDER BY r.part`, key.Tenant, key.Key)
}
