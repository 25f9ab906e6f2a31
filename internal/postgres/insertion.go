package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Insertion is a batch that is about to be appended to a session whose policy caps results at insertion.
type Insertion struct {
	session.Key
	Format   session.Format
	FirstSeq int64
	Messages []session.NewMessage
	Policy   json.RawMessage // the document
}

// Shown is what views show of a message; the zero Shown is the message itself.
type Shown struct {
	Body   []byte
	Tokens int
}

// Cap cuts the oversized results of a batch in the transaction that appends it, and persists them there. It returns one
// Shown for each message, or nil if nothing is oversized.
type Cap func(ctx context.Context, tx pgx.Tx, batch Insertion) ([]Shown, error)

// CapWith sets what caps results at insertion; without it nothing does. It must be called before the store is used.
func (s *Store) CapWith(c Cap) { s.cap = c }

// shown is what views show of a batch, as the statement of an append takes it.
type shown struct {
	bodies [][]byte
	tokens []*int32
	spared int64
}

// capped has the batch of an append capped, if the session's policy says so and a message is large enough.
func (s *Store) capped(ctx context.Context, tx pgx.Tx, row lockedSession, a session.Append) (*shown, error) {
	if s.cap == nil || row.capsOver == nil || largestAnswer(a.Messages) <= *row.capsOver {
		return nil, nil
	}
	batch := Insertion{Key: row.Key, Format: a.Format, FirstSeq: row.lastSeq + 1, Messages: a.Messages}
	err := tx.QueryRow(ctx, `
		SELECT document
		  FROM policies
		 WHERE tenant_id = $1 AND id = $2`, [16]byte(row.Tenant), [16]byte(row.policy)).Scan(&batch.Policy)
	if err != nil {
		return nil, err
	}
	views, err := s.cap(ctx, tx, batch)
	if err != nil || views == nil {
		return nil, err
	}
	all := &shown{bodies: make([][]byte, len(views)), tokens: make([]*int32, len(views))}
	for i, view := range views {
		if view.Body != nil {
			tokens := int32(view.Tokens)
			all.bodies[i], all.tokens[i] = view.Body, &tokens
			all.spared += int64(a.Messages[i].Tokens - view.Tokens)
		}
	}
	return all, nil
}

// largestAnswer is the size of the largest message that answers calls.
func largestAnswer(messages []session.NewMessage) (bytes int32) {
	for i := range messages {
		if m := &messages[i]; len(m.Answers) > 0 {
			bytes = max(bytes, int32(len(m.Body)))
		}
	}
	return bytes
}

// Exchange reads the newest messages of a format before seq, of the last so many, that make or answer one of the calls,
// oldest first.
func Exchange(ctx context.Context, tx pgx.Tx, key session.Key, f session.Format, seq int64, ids []string) ([][]byte, error) {
	const last = 256
	rows, err := tx.Query(ctx, `
		SELECT body
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3 AND seq < $4
		   AND (calls && $5::text[] OR answers && $5::text[])
		   AND format = $6
		 ORDER BY seq`, [16]byte(key.Tenant), [16]byte(key.Key), max(seq-last, 1), seq, texts(ids), f.Number())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[[]byte])
}
