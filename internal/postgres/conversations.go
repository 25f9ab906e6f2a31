package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// CreateWith creates a session and appends its first messages, both or neither. There may be no messages.
//
// Errors: ErrExists if its id is taken, ErrTooManyMessages, ErrIdempotencyReused.
func (s *Store) CreateWith(
	ctx context.Context, a session.Append, change session.Change,
) (session.Session, bool, error) {
	return once(ctx, s, a.Session.Tenant, a.Idempotency, func(tx pgx.Tx) (session.Session, uuid.UUID, error) {
		created, err := insertSession(ctx, tx, a.Session, change)
		if err == nil && !created {
			err = fmt.Errorf("session %q: %w", a.Session.ID, session.ErrExists)
		}
		if err != nil {
			return session.Session{}, uuid.Nil, err
		}
		if len(a.Messages) > 0 {
			if err := s.appendFirst(ctx, tx, a); err != nil {
				return session.Session{}, uuid.Nil, err
			}
		}
		made, err := readSession(ctx, tx, a.Session)
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

// Containing reads the newest of a session's messages, removed ones aside, whose bytes contain text: a few, newest
// first. ErrNotFound if there is no such session.
func (s *Store) Containing(ctx context.Context, at session.Address, text []byte) ([]session.Message, error) {
	const limit = 16
	return inSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]session.Message, error) {
		return rowsIn(ctx, tx, scanMessage, `
			SELECT `+messageColumns+`
			  FROM messages
			 WHERE tenant_id = $1
			   AND session_key = $2
			   AND seq > 0
			   AND removed_at IS NULL
			   AND position($3::bytea IN body) > 0
			 ORDER BY seq DESC
			 LIMIT $4`, at.Tenant, key.Key, text, limit)
	})
}

// ViewWithSources is a view with what is needed to tell which message of the log each of its messages renders.
type ViewWithSources struct {
	session.Session
	Through int64           // the last seq that the checkpoint covers
	Body    []byte          // the checkpoint's messages, joined by commas, as zframe blocks
	Size    int             // of Body, decompressed
	Units   json.RawMessage // of the checkpoint, as package compact wrote them
	RawFrom int64           // seq of the newest message of the user or, if that is later, of the last but three

	// Messages are the log without removed messages. Those before RawFrom that the checkpoint covers have no bodies.
	Messages []session.Message
}

// ViewWithSources reads a view and the messages behind it; ErrNotFound.
func (s *Store) ViewWithSources(ctx context.Context, at session.Address) (v ViewWithSources, err error) {
	err = s.inSnapshot(ctx, at.Tenant, func(tx pgx.Tx) error {
		if v.Session, err = readSession(ctx, tx, at); err != nil {
			return err
		}
		if err := v.readCheckpoint(ctx, tx, at); err != nil {
			return err
		}
		v.Messages, err = rowsIn(ctx, tx, scanMessage, `
			SELECT seq, role, format, tokens, coalesce(client_id, ''),
			       CASE WHEN seq >= $4 THEN body WHEN seq > $3 THEN coalesce(view_body, body) END,
			       created_at, removed_at, 0, CASE WHEN seq >= $4 OR seq > $3 AND view_body IS NULL THEN digest END
			  FROM messages
			 WHERE tenant_id = $1 AND session_key = $2 AND seq > 0 AND seq <= $5 AND removed_at IS NULL
			 ORDER BY seq`, at.Tenant, v.Key, v.Through, v.RawFrom, v.LastSeq)
		return err
	})
	return v, err
}

var sourcesSQL = statement("view_sources", "{checkpoint}", newestCheckpoint)

func (v *ViewWithSources) readCheckpoint(ctx context.Context, tx pgx.Tx, at session.Address) error {
	return tx.QueryRow(ctx, sourcesSQL, at.Tenant, v.Key).Scan(&v.Through, &v.Body, &v.Size, &v.Units, &v.RawFrom)
}
