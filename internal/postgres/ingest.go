package postgres

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
)

// IngestBatch is a batch that is about to be appended to a session whose policy caps results at ingestion.
type IngestBatch struct {
	Policy   json.RawMessage // the document
	Format   session.Format
	FirstSeq int64
	Messages []session.NewMessage
	Earlier  [][]byte // messages of this format before it that make or answer one of the calls it answers, oldest first
}

// ViewMessage is what views show of a message. The zero ViewMessage is shown as the message itself.
type ViewMessage struct {
	Body   []byte
	Tokens int
}

// IngestCap cuts the oversized results of a batch. It returns one ViewMessage for each message and the results in
// full, or nothing if no result is oversized. It must be pure: it is called under the session's lock.
type IngestCap func(batch IngestBatch) ([]ViewMessage, []persist.NewResult, error)

// cappedViews is what views show of a batch, by column; what is shown as it is has NULLs.
type cappedViews struct {
	bodies [][]byte
	tokens []*int32
	spared int64 // tokens that views do not show
}

// capped caps the batch of an append and stores the full results, if the session's policy caps and a message is large
// enough; nil if views show all messages as they are.
func (s *Store) capped(ctx context.Context, tx pgx.Tx, row lockedSession, a session.Append) (*cappedViews, error) {
	if s.cap == nil || row.capsOver == nil || largestAnswer(a.Messages) <= *row.capsOver {
		return nil, nil
	}
	batch, err := readIngestBatch(ctx, tx, row, a)
	if err != nil {
		return nil, err
	}
	views, results, err := s.cap(batch)
	if err != nil || views == nil {
		return nil, err
	}
	if _, err := persist.Put(ctx, tx, row.Key, results); err != nil {
		return nil, err
	}
	all := &cappedViews{bodies: make([][]byte, len(views)), tokens: make([]*int32, len(views))}
	for i, view := range views {
		if view.Body != nil {
			tokens := int32(view.Tokens)
			all.bodies[i] = view.Body
			all.tokens[i] = &tokens
			all.spared += int64(a.Messages[i].Tokens - view.Tokens)
		}
	}
	return all, nil
}

// earlierMessages is how many messages before a batch are searched for the calls that it answers.
const earlierMessages = 256

func readIngestBatch(ctx context.Context, tx pgx.Tx, row lockedSession, a session.Append) (IngestBatch, error) {
	batch := IngestBatch{Format: a.Format, FirstSeq: row.lastSeq + 1, Messages: a.Messages}
	err := tx.QueryRow(ctx, `
		SELECT p.document
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
		 WHERE s.tenant_id = $1 AND s.key = $2`, row.Tenant, row.Key.Key).Scan(&batch.Policy)
	if err != nil {
		return batch, err
	}
	var calls []string
	for i := range a.Messages {
		calls = append(calls, a.Messages[i].Answers...)
	}
	earlier, err := readLog(ctx, tx, row.Key, ofStored, pgx.RowToStructByPos[StoredMessage], `
		SELECT seq, '', body, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3 AND seq < $4
		   AND ($7 OR calls && $5::text[] OR answers && $5::text[] OR body IS NULL)
		   AND format = $6
		 ORDER BY seq`,
		row.Tenant, row.Key.Key, max(batch.FirstSeq-earlierMessages, 1), batch.FirstSeq,
		texts(calls), a.Format.Number(), slices.ContainsFunc(calls, units.MayBeAlias))
	if err != nil {
		return batch, err
	}
	batch.Earlier, err = outlines(earlier, texts(calls))
	return batch, err
}

// outlines returns the bodies of messages. Of those in packs it takes only those that make or answer one of the calls,
// and leaves empty what their holes had: to fill them might take a store outside the database, which must not be read
// under the session's lock, and only calls and answers are looked for.
func outlines(log logOf[StoredMessage], calls []string) (bodies [][]byte, err error) {
	for i := range log.messages {
		m := &log.messages[i]
		if m.Body != nil {
			bodies = append(bodies, m.Body)
			continue
		}
		r, err := log.packs.record(m.Seq)
		if err != nil {
			return nil, err
		}
		made, answered := idsOfShape(r.Shape)
		if meet(made, calls) || meet(answered, calls) || slices.ContainsFunc(calls, units.MayBeAlias) {
			bodies = append(bodies, r.Outline())
		}
	}
	return bodies, nil
}

// meet reports whether two lists have an id in common.
func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(id string) bool { return slices.Contains(b, id) })
}

// largestAnswer returns the size of the largest message that answers calls.
func largestAnswer(messages []session.NewMessage) (bytes int32) {
	for i := range messages {
		if m := &messages[i]; len(m.Answers) > 0 {
			bytes = max(bytes, int32(len(m.Body)))
		}
	}
	return bytes
}
