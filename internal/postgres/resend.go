package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// resend recognises a batch that was appended before: some of its client ids are known, and the log has the batch
// there, in this order, with these ids and bytes, maybe superseded by now. It returns ErrClientIDReused if only part of
// that is true, and a zero answer if no client id is known.
func resend(ctx context.Context, tx pgx.Tx, row lockedSession, a session.Append) (session.Appended, error) {
	starts, err := startsOf(ctx, tx, row, a.Messages)
	if err != nil || len(starts) == 0 {
		return session.Appended{}, err
	}
	var differs error // how it is not the newest one that has its ids
	for _, first := range starts {
		done, err := resentAt(ctx, tx, row, a, first)
		if !errors.Is(err, session.ErrClientIDReused) {
			return done, err
		}
		if differs == nil {
			differs = err
		}
	}
	return session.Appended{}, differs
}

// resentAt returns the answer to a batch that was appended before at seq first; ErrClientIDReused if it was not.
func resentAt(ctx context.Context, tx pgx.Tx, row lockedSession, a session.Append, first int64) (
	session.Appended, error,
) {
	stored, err := readStored(ctx, tx, row.Key, `
		SELECT seq, coalesce(client_id, ''), body, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3 AND seq < $4
		 ORDER BY seq`, row.Tenant, row.Key.Key, first, first+int64(len(a.Messages)))
	if err != nil {
		return session.Appended{}, err
	}
	done := session.Appended{
		FirstSeq: first, LastSeq: first + int64(len(a.Messages)) - 1,
		ContextTokens: row.contextTokens, TotalTokens: row.totalTokens,
		Compaction: session.CompactionNone, Replayed: true,
	}
	for i, m := range a.Messages {
		seq := first + int64(i)
		same := i < len(stored) && stored[i].Seq == seq && stored[i].ClientID == m.ClientID &&
			stored[i].Is(m.Body)
		if !same {
			return session.Appended{}, fmt.Errorf("message %d with client_id %q is not the message at seq %d, "+
				"where the known client ids put it: %w", i, m.ClientID, seq, session.ErrClientIDReused)
		}
		done.Tokens += int64(m.Tokens)
	}
	return done, nil
}

// StoredMessage is a message that the log has. One in a pack whose holes are not filled has a digest and no body.
type StoredMessage struct {
	Seq      int64
	ClientID string
	Body     []byte
	Digest   []byte // SHA-256 of Body
}

// Is reports whether the message consists of these bytes.
func (m *StoredMessage) Is(body []byte) bool {
	if m.Body == nil {
		sum := sha256.Sum256(body)
		return string(m.Digest) == string(sum[:])
	}
	return string(m.Body) == string(body)
}

// readStored reads messages under the session's lock, to be compared with others. It fills no holes, for what that
// takes may lie outside the database.
func readStored(ctx context.Context, tx pgx.Tx, key session.Key, sql string, args ...any) ([]StoredMessage, error) {
	log, err := readLog(ctx, tx, key, ofStored, pgx.RowToStructByPos[StoredMessage], sql, args...)
	if err != nil {
		return nil, err
	}
	for i := range log.messages {
		m := &log.messages[i]
		if m.Body != nil {
			continue
		}
		r, err := log.packs.record(m.Seq)
		if err != nil {
			return nil, err
		}
		if m.Digest = r.Digest; len(r.Holes) == 0 {
			m.Body = r.Rest
		}
	}
	return log.messages, nil
}

// maxStarts is how many places of a batch are looked at, one for each time that its messages were superseded.
const maxStarts = 20

// startsOf returns where a batch begins if it was appended before, newest first, judged by the first of its client ids
// that is known. A client id that messages have had one after the other names several places.
func startsOf(ctx context.Context, tx pgx.Tx, row lockedSession, messages []session.NewMessage) (
	starts []int64, err error,
) {
	var ids []string
	at := map[string]int{}
	for i, m := range messages {
		if m.ClientID != "" {
			ids = append(ids, m.ClientID)
			at[m.ClientID] = i
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	known, err := RowsIn(ctx, tx, pgx.RowToStructByPos[StoredMessage], `
		SELECT seq, client_id, NULL::bytea, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND client_id = ANY ($3) AND `+namedSQL+`
		UNION ALL
		SELECT seq, client_id, NULL::bytea, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND client_id = ANY ($3) AND superseded_by > removed_seq
		 ORDER BY seq`, row.Tenant, row.Key.Key, ids)
	for _, m := range known {
		first := max(1, m.Seq-int64(at[m.ClientID]))
		if !slices.Contains(starts, first) {
			starts = append(starts, first)
		}
	}
	starts = starts[max(0, len(starts)-maxStarts):]
	slices.Reverse(starts)
	return starts, err
}
