package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// ErrUnfinished says that an erasure has more to erase before it can end.
var ErrUnfinished = errors.New("the erasure has more to erase")

var forgetSubjectSQL = statement("forget_subject")

// FinishErasure ends an erasure of sessions with its receipt. kept is how long backups are kept, 0
// if that is not known.
//
// Errors: ErrUnfinished if there is anything left, or a job of a session still runs; ErrNotFound, ErrEnded.
func (s *Store) FinishErasure(ctx context.Context, w ErasureWork, kept time.Duration) error {
	return s.Seeing(AllSessions).InTenant(ctx, w.Tenant, func(tx pgx.Tx) error {
		r, err := finishedReceipt(ctx, tx, w)
		if err != nil {
			return err
		}
		if err := s.forgetRest(ctx, tx, w, r); err != nil {
			return err
		}
		if w.Kind == session.ErasureOfSubject {
			if err := recordFinished(ctx, tx, w, r); err != nil {
				return err
			}
		}
		if r.Audit, err = headOf(ctx, tx, w.Tenant); err != nil {
			return err
		}
		if err := lookSoon(ctx, tx, w); err != nil {
			return err
		}
		return endErasure(ctx, tx, w, r, kept)
	})
}

// finishedReceipt returns what the receipt of an erasure says, if nothing is left to erase.
func finishedReceipt(ctx context.Context, tx pgx.Tx, w ErasureWork) (r *session.Receipt, err error) {
	if r, err = countedReceipt(ctx, tx, w); err != nil {
		return nil, err
	}
	for state, list := range map[string]*[]uuid.UUID{"gone": &r.Sessions, "held": &r.Held} {
		*list, err = RowsIn(ctx, tx, pgx.RowTo[uuid.UUID], `
			SELECT session_key
			  FROM erasure_sessions
			 WHERE tenant_id = $1 AND erasure_id = $2 AND state = $3
			 ORDER BY session_key`, w.Tenant, w.ID, state)
		if err != nil {
			return nil, err
		}
	}
	left, err := RowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT EXISTS (
		       SELECT
		         FROM sessions s
		        WHERE s.tenant_id = $1 AND `+ofErasureSQL+`) -- what has expired since is the next erasure's
		    OR EXISTS (
		       SELECT
		         FROM erasure_sessions
		        WHERE tenant_id = $1 AND erasure_id = $2 AND state = 'erased')`, w.Tenant, w.ID, w.Metadata)
	if err == nil && !left {
		left, err = queue.RunsFor(ctx, tx, r.Sessions)
	}
	if err == nil && left {
		err = ErrUnfinished
	}
	return r, err
}

// countedReceipt locks an erasure, and returns what its receipt says of who asked for it and how much was erased.
func countedReceipt(ctx context.Context, tx pgx.Tx, w ErasureWork) (*session.Receipt, error) {
	r := &session.Receipt{
		Version: session.ReceiptVersion, ID: w.ID, Kind: w.Kind, Tenant: w.Tenant,
		By:       session.ErasedBy{Actor: string(w.By.Kind), Request: w.By.Request},
		Sessions: []uuid.UUID{}, Held: []uuid.UUID{},
	}
	if w.By.ID != uuid.Nil {
		r.By.ID = &w.By.ID
	}
	var digest []byte
	var state session.ErasureState
	err := tx.QueryRow(ctx, `
		SELECT state, created_at, now(), sessions, messages, results, bodies, checkpoints, bytes, objects, digest,
		       (SELECT id FROM installation)
		  FROM erasures
		 WHERE tenant_id = $1 AND id = $2
		   FOR UPDATE`, w.Tenant, w.ID).
		Scan(&state, &r.AskedAt, &r.FinishedAt, &r.Erased.Sessions, &r.Erased.Messages, &r.Erased.Results,
			&r.Erased.Bodies, &r.Erased.Checkpoints, &r.Erased.Bytes, &r.Erased.Objects, &digest,
			&r.Installation)
	if err != nil {
		return nil, NotFound(err)
	}
	if state == session.ErasureDone {
		return nil, session.ErrEnded
	}
	r.Digest = hex.EncodeToString(digest)
	return r, nil
}

// forgetRest forgets what jobs that ended late, and recompactions, still have of the sessions of an erasure. A legal
// hold keeps what names the subject of a held session.
func (s *Store) forgetRest(ctx context.Context, tx pgx.Tx, w ErasureWork, r *session.Receipt) error {
	for _, key := range r.Sessions {
		if err := s.queue.Scrub(ctx, tx, key); err != nil {
			return err
		}
	}
	if w.Metadata == nil || len(r.Held) > 0 {
		return nil
	}
	return Exec(ctx, tx, forgetSubjectSQL, w.Tenant, w.Metadata)
}

// recordFinished records the end of an erasure of a subject, and blanks what the trail says of its subject, unless a
// legal hold keeps any of its sessions.
func recordFinished(ctx context.Context, tx pgx.Tx, w ErasureWork, r *session.Receipt) error {
	d := auditEntry{action: audit.ErasureFinish, object: audit.Erasure, id: w.ID.String()}
	if len(r.Held) > 0 {
		return record(ctx, tx, w.Tenant, d)
	}
	blanked, err := blankedBy(ctx, tx, `SELECT * FROM audit_blank_subject($1, $2)`, w.Tenant, w.Metadata)
	if err != nil {
		return err
	}
	if blanked.Rows > 0 {
		d.detail = blanked
	}
	return record(ctx, tx, w.Tenant, d)
}

func headOf(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) (head session.TrailHead, err error) {
	err = tx.QueryRow(ctx, `
		SELECT n, encode(hash, 'hex')
		  FROM audit_heads
		 WHERE tenant_id = $1`, tenant).Scan(&head.N, &head.Hash)
	return head, err
}

// endErasure ends an erasure with its receipt.
func endErasure(
	ctx context.Context, tx pgx.Tx, w ErasureWork, r *session.Receipt, kept time.Duration,
) error {
	if kept > 0 {
		r.Backups = session.BackupsKept{
			KeptSeconds: new(int64(kept.Seconds())), GoneBy: new(r.FinishedAt.Add(kept)),
		}
	}
	return Exec(ctx, tx, `
		UPDATE erasures
		   SET state = 'done', metadata = NULL, digest = NULL, receipt = $3, finished_at = now()
		 WHERE tenant_id = $1 AND id = $2`, w.Tenant, w.ID, r)
}

// TablesWith returns the tables that have rows of some sessions of a tenant, other than what says that they were
// erased.
func (s *Store) TablesWith(ctx context.Context, tenant uuid.UUID, sessions []uuid.UUID) (found []string, err error) {
	err = s.inSnapshot(ctx, tenant, func(tx pgx.Tx) error {
		found, err = tablesWhere(ctx, tx, `(column_name IN ('session_key', 'held_in')
			OR table_name = 'sessions' AND column_name = 'key') AND table_name <> 'erasure_sessions'`,
			func(column string) string { return ` AND ` + column + ` = ANY ($2)` }, tenant, sessions)
		return err
	})
	return found, err
}

// TablesOf returns the tables that have rows of a tenant that was deleted at a time, and whether there is one again
// with its id.
func (s *Store) TablesOf(ctx context.Context, tenant uuid.UUID, at time.Time) (found []string, again bool, err error) {
	err = s.inSnapshot(ctx, tenant, func(tx pgx.Tx) error {
		again, err = RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (SELECT FROM tenants WHERE id = $1 AND created_at >= $2)`, tenant, at)
		if err == nil {
			found, err = tablesWhere(ctx, tx, `column_name = 'tenant_id'`,
				func(string) string { return `` }, tenant)
		}
		return err
	})
	return found, again, err
}

// tablesWhere returns the tables with a row of the tenant $1 for which a condition on some columns holds.
func tablesWhere(
	ctx context.Context, tx pgx.Tx, columns string, condition func(column string) string, args ...any,
) (found []string, err error) {
	all, err := RowsIn(ctx, tx, pgx.RowToStructByPos[struct{ Table, Column string }], `
		SELECT table_name::text, column_name::text
		  FROM information_schema.columns c
		 WHERE table_schema = current_schema() AND `+columns+`
		 ORDER BY 1, 2`)
	for _, c := range all {
		if err != nil {
			break
		}
		var has bool
		has, err = RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (
			       SELECT
			         FROM `+pgx.Identifier{c.Table}.Sanitize()+`
			        WHERE tenant_id = $1`+condition(pgx.Identifier{c.Column}.Sanitize())+`)`, args...)
		if has {
			found = append(found, c.Table)
		}
	}
	return found, err
}
