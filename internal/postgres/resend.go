package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// resend recognises a batch that was appended before: some of its client ids are known, and the log has the batch
// there, in this order, with these ids and bytes. It returns ErrClientIDReused if only part of that is true, and a
// zero answer if no client id is known.
func resend(ctx context.Context, tx pgx.Tx, row lockedSession, a session.Append) (session.Appended, error) {
	first, err := firstSeqOf(ctx, tx, row, a.Messages)
	if err != nil || first == 0 {
		return session.Appended{}, err
	}
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
			stored[i].is(m.Body)
		if !same {
			return session.Appended{}, fmt.Errorf("message %d with client_id %q is not the message at seq %d, "+
				"where the known client ids put it: %w", i, m.ClientID, seq, session.ErrClientIDReused)
		}
		done.Tokens += int64(m.Tokens)
	}
	return done, nil
}

// storedMessage is a message that the log has. One in a pack whose holes are not filled has a digest and no body.
type storedMessage struct {
	Seq      int64
	ClientID string
	Body     []byte
	Digest   []byte // SHA-256 of Body
}

// is reports whether the message consists of these bytes.
func (m *storedMessage) is(body []byte) bool {
	if m.Body == nil {
		sum := sha256.Sum256(body)
		return string(m.Digest) == string(sum[:])
	}
	return string(m.Body) == string(body)
}

// readStored reads messages under the session's lock, to be compared with others. It fills no holes, for what that
// takes may lie outside the database.
func readStored(ctx context.Context, tx pgx.Tx, key session.Key, sql string, args ...any) ([]storedMessage, error) {
	log, err := readLog(ctx, tx, key, ofStored, pgx.RowToStructByPos[storedMessage], sql, args...)
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

// firstSeqOf returns where a batch begins if it was appended before, judged by the first of its client ids that is
// known; 0 if none is.
func firstSeqOf(ctx context.Context, tx pgx.Tx, row lockedSession, messages []session.NewMessage) (
	first int64, err error,
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
		return 0, nil
	}
	var known string
	err = tx.QueryRow(ctx, `
		SELECT client_id, seq
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND client_id = ANY ($3)
		 ORDER BY seq
		 LIMIT 1`, row.Tenant, row.Key.Key, ids).Scan(&known, &first)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return max(1, first-int64(at[known])), err
}
