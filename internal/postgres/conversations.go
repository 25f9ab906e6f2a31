package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// CreateWith makes a session and appends its first messages, both or neither. There may be no messages.
//
// Errors: ErrExists, ErrTooManyMessages, ErrIdempotencyReused.
func (s *Store) CreateWith(ctx context.Context, a session.Append, change session.Change) (session.Session, bool, error) {
	return once(ctx, s, a.Session.Tenant, a.Idempotency, func(tx pgx.Tx) (made session.Session, _ uuid.UUID, err error) {
		created, err := insertSession(ctx, tx, a.Session, change)
		if err == nil && !created {
			err = fmt.Errorf("session %q: %w", a.Session.ID, session.ErrExists)
		}
		if err != nil {
			return made, uuid.Nil, err
		}
		if len(a.Messages) > 0 {
			if err := s.appendFirst(ctx, tx, a); err != nil {
				return made, uuid.Nil, err
			}
		}
		made, err = readSession(ctx, tx, a.Session)
		return made, made.Key, err
	})
}

func (s *Store) appendFirst(ctx context.Context, tx pgx.Tx, a session.Append) error {
	row, err := lockSession(ctx, tx, a.Session)
	if err != nil {
		return err
	}
	if err := refuse(row, a); err != nil {
		return err
	}
	_, err = s.appendDue(ctx, tx, row, a, newAppendParams(a))
	return err
}

// Slice is a piece of a session's log without what was removed: Limit messages at most, from the first one, or from the
// last one backwards, or from behind After. The message that takes the bodies' size over Bytes is the last, but two
// messages come in any case.
type Slice struct {
	After      int64 // a seq; 0 for none
	Descending bool
	Limit      int
	Bytes      int64
}

// sliceStatement reads messages that were not removed, in one direction.
func sliceStatement(beyond, direction string) string {
	return `
	SELECT ` + messageColumns + `
	  FROM (SELECT *, row_number() OVER newest AS place, sum(octet_length(body)) OVER newest - octet_length(body) AS bytes_before
	          FROM messages
	         WHERE tenant_id = $1
	           AND session_key = $2
	           AND seq ` + beyond + ` $3
	           AND removed_at IS NULL
	        WINDOW newest AS (ORDER BY seq ` + direction + `)
	         ORDER BY seq ` + direction + `
	         LIMIT $4) m
	 WHERE bytes_before <= $5 OR place <= 2
	 ORDER BY seq ` + direction
}

// SliceSQL are the statements of a slice, by whether it descends.
var SliceSQL = map[bool]string{false: sliceStatement(`>`, `ASC`), true: sliceStatement(`<`, `DESC`)}

// Slice reads a session and a piece of its log; ErrNotFound.
func (s *Store) Slice(ctx context.Context, at session.Address, r Slice) (found session.Session, messages []session.Message, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	if r.Descending && r.After == 0 {
		r.After = session.MaxSessionMessages + 1
	}
	err = InTenant(ctx, s.pool, at.Tenant, snapshot, func(tx pgx.Tx) error {
		if found, err = readSession(ctx, tx, at); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, SliceSQL[r.Descending], [16]byte(at.Tenant), [16]byte(found.Key), r.After, r.Limit, r.Bytes)
		if err != nil {
			return err
		}
		messages, err = pgx.CollectRows(rows, scanMessage)
		return err
	})
	return found, messages, err
}

// Containing reads the newest of a session's messages, removed ones aside, whose bytes contain text: a few, newest first.
// ErrNotFound if there is no such session.
func (s *Store) Containing(ctx context.Context, at session.Address, text []byte) (found []session.Message, err error) {
	const most = 16
	err = s.inTenant(ctx, at.Tenant, func(tx pgx.Tx) error {
		key, err := SessionKey(ctx, tx, at)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			SELECT `+messageColumns+`
			  FROM messages
			 WHERE tenant_id = $1
			   AND session_key = $2
			   AND seq > 0
			   AND removed_at IS NULL
			   AND position($3::bytea IN body) > 0
			 ORDER BY seq DESC
			 LIMIT $4`, [16]byte(at.Tenant), key, text, most)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanMessage)
		return err
	})
	return found, err
}

// Traced is a view with what is needed to say which message of the log stands behind each of its own.
type Traced struct {
	session.Session
	Through  int64             // the last seq that the checkpoint covers
	Body     []byte            // the checkpoint's messages, joined by commas, as zframe blocks
	Size     int               // of Body, decompressed
	Units    json.RawMessage   // of the checkpoint, as package compact wrote them
	Messages []session.Message // the log, removed messages aside; without the bodies of those that only the checkpoint shows
	RawFrom  int64             // seq of the newest message of the user or, if that is later, of the last but three
}

// Traced reads a view and the messages behind it; ErrNotFound.
func (s *Store) Traced(ctx context.Context, at session.Address) (t Traced, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = InTenant(ctx, s.pool, at.Tenant, snapshot, func(tx pgx.Tx) error {
		if t.Session, err = readSession(ctx, tx, at); err != nil {
			return err
		}
		if err := t.readCheckpoint(ctx, tx, at); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			SELECT seq, role, format, tokens, coalesce(client_id, ''), created_at, removed_at,
			       CASE WHEN seq >= $4 THEN body WHEN seq > $3 THEN coalesce(view_body, body) END
			  FROM messages
			 WHERE tenant_id = $1 AND session_key = $2 AND seq > 0 AND seq <= $5 AND removed_at IS NULL
			 ORDER BY seq`, [16]byte(at.Tenant), [16]byte(t.Key), t.Through, t.RawFrom, t.LastSeq)
		if err != nil {
			return err
		}
		t.Messages, err = pgx.CollectRows(rows, scanMessage)
		return err
	})
	return t, err
}

func (t *Traced) readCheckpoint(ctx context.Context, tx pgx.Tx, at session.Address) error {
	return tx.QueryRow(ctx, `
		SELECT s.through_seq, c.body, coalesce(c.body_size, 0), c.units,
		       least((SELECT seq
		                FROM messages
		               WHERE tenant_id = $1 AND session_key = s.key AND seq > 0 AND role = 'user' AND removed_at IS NULL
		               ORDER BY seq DESC
		               LIMIT 1),
		             (SELECT seq
		                FROM messages
		               WHERE tenant_id = $1 AND session_key = s.key AND seq > 0 AND removed_at IS NULL
		               ORDER BY seq DESC
		              OFFSET 3
		               LIMIT 1),
		             s.last_seq + 1)
		  FROM sessions s
		  `+newestCheckpoint+`
		 WHERE s.tenant_id = $1 AND s.key = $2`, [16]byte(at.Tenant), [16]byte(t.Key)).
		Scan(&t.Through, &t.Body, &t.Size, &t.Units, &t.RawFrom)
}
