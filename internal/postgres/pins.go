package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

const pinColumns = `p.ref, p.seq, nullif(p.part, -1), p.text, p.tokens, p.note, p.created_at`

const (
	pinsSQL = `
		SELECT ` + pinColumns + `
		  FROM session_pins p
		  JOIN messages m ON m.tenant_id = p.tenant_id AND m.session_key = p.session_key AND m.seq = p.seq
		 WHERE p.tenant_id = $1 AND p.session_key = $2 AND m.removed_at IS NULL`
	pinOrder = `
		 ORDER BY p.seq, p.part, p.ref`
)

func scanPin(row pgx.CollectableRow) (p session.Pin, err error) {
	var text []byte // which may have characters that PostgreSQL's text cannot
	err = row.Scan(&p.Ref, &p.Seq, &p.Part, &text, &p.Tokens, &p.Note, &p.CreatedAt)
	p.Text = string(text)
	return p, err
}

// Pins returns what callers pinned of a session, by their places in the log; ErrNotFound.
func (s *Store) Pins(ctx context.Context, at session.Address) ([]session.Pin, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]session.Pin, error) {
		return pinsOf(ctx, tx, key)
	})
}

// pinsOf reads the pins of messages that were not removed.
func pinsOf(ctx context.Context, tx pgx.Tx, key session.Key) ([]session.Pin, error) {
	return RowsIn(ctx, tx, scanPin, pinsSQL+pinOrder, key.Tenant, key.Key)
}

// ExportPins returns what callers pinned of the messages of an exported session, by their places in the log.
func (s *Store) ExportPins(ctx context.Context, e session.Exported) ([]session.Pin, error) {
	return QueryRows(ctx, s, e.Key.Tenant, scanPin, pinsSQL+` AND p.seq <= $3`+pinOrder,
		e.Key.Tenant, e.Key.Key, e.LastSeq)
}

// PutPin pins a text of a session, or changes the note of one that is pinned. limit is how many tokens all pins may
// have. A new pin has the time of now, unless it has one already.
//
// Errors: ErrNotFound, ErrTooManyPins.
func (s *Store) PutPin(ctx context.Context, at session.Address, pin session.Pin, limit int) (session.Pin, error) {
	return ChangeInSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (session.Pin, error) {
		var count, tokens int
		var note *string
		err := tx.QueryRow(ctx, `
			SELECT count(*) FILTER (WHERE ref <> $3), coalesce(sum(tokens) FILTER (WHERE ref <> $3), 0),
			       max(note) FILTER (WHERE ref = $3)
			  FROM session_pins
			 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key, pin.Ref).
			Scan(&count, &tokens, &note)
		if err != nil {
			return pin, err
		}
		if count >= session.MaxPins || tokens+pin.Tokens > limit {
			return pin, session.ErrTooManyPins
		}
		part := session.WholeMessage
		if pin.Part != nil {
			part = *pin.Part
		}
		made, err := RowIn(ctx, tx, scanPin, `
			INSERT INTO session_pins AS p (tenant_id, session_key, ref, seq, part, text, tokens, note,
			                               created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, coalesce(nullif($9, '0001-01-01 00:00:00Z'::timestamptz), now()))
			    ON CONFLICT (tenant_id, session_key, ref) DO UPDATE SET note = EXCLUDED.note
			RETURNING `+pinColumns,
			key.Tenant, key.Key, pin.Ref, pin.Seq, part, []byte(pin.Text), pin.Tokens, pin.Note,
			pin.CreatedAt)
		if err != nil || note != nil && *note == pin.Note {
			return made, err
		}
		return made, recordSession(ctx, tx, at, audit.PinSet, about{"ref": pin.Ref})
	})
}

// Unpin deletes a pin; ErrNotFound.
func (s *Store) Unpin(ctx context.Context, at session.Address, ref string) error {
	_, err := ChangeInSession(ctx, s, at, func(tx pgx.Tx, key session.Key) (struct{}, error) {
		deleted, err := tx.Exec(ctx, `
			DELETE FROM session_pins
			 WHERE tenant_id = $1 AND session_key = $2 AND ref = $3`, key.Tenant, key.Key, ref)
		if err == nil && deleted.RowsAffected() == 0 {
			err = session.ErrNotFound
		}
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, recordSession(ctx, tx, at, audit.PinDelete, about{"ref": ref})
	})
	return err
}
