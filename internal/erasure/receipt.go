package erasure

import (
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// errUnfinished says that an erasure has more to erase before it can end.
var errUnfinished = errors.New("the erasure has more to erase")

//go:embed forget_subject.sql
var forgetSubjectSQL string

// Finish ends an erasure of sessions with its receipt. kept is how long backups are kept, 0
// if that is not known.
//
// Errors: errUnfinished if there is anything left, or a job of a session still runs; ErrNotFound, ErrEnded.
func (w *Work) Finish(ctx context.Context, kept time.Duration) error {
	return w.store.InTenant(ctx, w.tenant, func(tx pgx.Tx) error {
		r, err := w.finishedReceipt(ctx, tx)
		if err != nil {
			return err
		}
		if err := w.forgetRest(ctx, tx, r); err != nil {
			return err
		}
		if w.Kind == session.ErasureOfSubject {
			if err := w.recordFinished(ctx, tx, r); err != nil {
				return err
			}
		}
		if r.Audit, err = headOf(ctx, tx, w.tenant); err != nil {
			return err
		}
		if err := postgres.LookSoon(ctx, tx, w.tenant, w.ID); err != nil {
			return err
		}
		return w.end(ctx, tx, r, kept)
	})
}

// finishedReceipt returns what the receipt of an erasure says, if nothing is left to erase.
func (w *Work) finishedReceipt(ctx context.Context, tx pgx.Tx) (r *session.Receipt, err error) {
	if r, err = w.countedReceipt(ctx, tx); err != nil {
		return nil, err
	}
	for state, list := range map[string]*[]uuid.UUID{"gone": &r.Sessions, "held": &r.Held} {
		*list, err = postgres.RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
			SELECT session_key
			  FROM erasure_sessions
			 WHERE tenant_id = $1 AND erasure_id = $2 AND state = $3
			 ORDER BY session_key`, w.tenant, w.ID, state)
		if err != nil {
			return nil, err
		}
	}
	left, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT EXISTS (
		       SELECT
		         FROM sessions s
		        WHERE s.tenant_id = $1 AND `+ofErasureSQL+`) -- what has expired since is the next erasure's
		    OR EXISTS (
		       SELECT
		         FROM erasure_sessions
		        WHERE tenant_id = $1 AND erasure_id = $2 AND state = 'erased')`, w.tenant, w.ID, w.Metadata)
	if err == nil && !left {
		left, err = queue.RunsFor(ctx, tx, r.Sessions)
	}
	if err == nil && left {
		err = errUnfinished
	}
	return r, err
}

// countedReceipt locks an erasure, and returns what its receipt says of who asked for it and how much was erased.
func (w *Work) countedReceipt(ctx context.Context, tx pgx.Tx) (*session.Receipt, error) {
	r := &session.Receipt{
		Version: session.ReceiptVersion, ID: w.ID, Kind: w.Kind, Tenant: w.tenant,
		By:       session.ErasedBy{Actor: string(w.by.Kind), Request: w.by.Request},
		Sessions: []uuid.UUID{}, Held: []uuid.UUID{},
	}
	if w.by.ID != uuid.Nil {
		r.By.ID = &w.by.ID
	}
	var digest []byte
	var state session.ErasureState
	err := tx.QueryRow(ctx, `
		SELECT state, created_at, now(), sessions, messages, results, bodies, checkpoints, bytes, objects, digest,
		       (SELECT id FROM installation)
		  FROM erasures
		 WHERE tenant_id = $1 AND id = $2
		   FOR UPDATE`, w.tenant, w.ID).
		Scan(&state, &r.AskedAt, &r.FinishedAt, &r.Erased.Sessions, &r.Erased.Messages, &r.Erased.Results,
			&r.Erased.Bodies, &r.Erased.Checkpoints, &r.Erased.Bytes, &r.Erased.Objects, &digest,
			&r.Installation)
	if err != nil {
		return nil, postgres.NotFound(err)
	}
	if state == session.ErasureDone {
		return nil, session.ErrEnded
	}
	r.Digest = hex.EncodeToString(digest)
	return r, nil
}

// forgetRest forgets what jobs that ended late, and recompactions, still have of the sessions of an erasure. A legal
// hold keeps what names the subject of a held session.
func (w *Work) forgetRest(ctx context.Context, tx pgx.Tx, r *session.Receipt) error {
	for _, key := range r.Sessions {
		if err := w.store.Queue().Scrub(ctx, tx, key); err != nil {
			return err
		}
	}
	if w.Metadata == nil || len(r.Held) > 0 {
		return nil
	}
	return postgres.Exec(ctx, tx, forgetSubjectSQL, w.tenant, w.Metadata)
}

// recordFinished records the end of an erasure of a subject, and blanks what the trail says of its subject, unless a
// legal hold keeps any of its sessions.
func (w *Work) recordFinished(ctx context.Context, tx pgx.Tx, r *session.Receipt) error {
	var detail any
	if len(r.Held) == 0 {
		blanked, err := postgres.BlankedBy(ctx, tx, `SELECT * FROM audit_blank_subject($1, $2)`, w.tenant, w.Metadata)
		if err != nil {
			return err
		}
		if blanked.Rows > 0 {
			detail = blanked
		}
	}
	return postgres.Record(ctx, tx, w.tenant, audit.ErasureFinish, audit.Erasure, w.ID.String(), detail)
}

func headOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (head session.TrailHead, err error) {
	err = tx.QueryRow(ctx, `
		SELECT n, encode(hash, 'hex')
		  FROM audit_heads
		 WHERE tenant_id = $1`, tenant).Scan(&head.N, &head.Hash)
	return head, err
}

// end ends an erasure with its receipt.
func (w *Work) end(ctx context.Context, tx pgx.Tx, r *session.Receipt, kept time.Duration) error {
	if kept > 0 {
		r.Backups = session.BackupsKept{KeptSeconds: new(int64(kept.Seconds())), GoneBy: new(r.FinishedAt.Add(kept))}
	}
	return postgres.Exec(ctx, tx, `
		UPDATE erasures
		   SET state = 'done', metadata = NULL, digest = NULL, receipt = $3, finished_at = now()
		 WHERE tenant_id = $1 AND id = $2`, w.tenant, w.ID, r)
}
