package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// ImportedLog is a session's log while a transaction holds its lock, for messages that bring their seqs and times.
type ImportedLog struct {
	session.Key
	LastSeq   int64 // before the transaction
	TailBytes int64 // likewise

	store   *Store
	tx      pgx.Tx
	row     lockedSession
	bytes   int64 // that were inserted
	context int64 // tokens of the view
}

// LockLog locks a session's log until the end of the transaction; ErrNotFound.
func (s *Store) LockLog(ctx context.Context, tx pgx.Tx, at session.Address) (*ImportedLog, error) {
	row, err := lockSession(ctx, tx, at)
	return &ImportedLog{
		Key: row.Key, LastSeq: row.lastSeq, TailBytes: row.tailBytes,
		store: s, tx: tx, row: row, context: row.contextTokens,
	}, err
}

// Held reads the messages that have some seqs, and those that have some client ids now.
func (l *ImportedLog) Held(ctx context.Context, seqs []int64, clients []string) (
	bySeq, named []StoredMessage, err error,
) {
	bySeq, err = readStored(ctx, l.tx, l.Key, `
		SELECT seq, coalesce(client_id, ''), body, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq = ANY ($3)
		 ORDER BY seq`, l.Tenant, l.Key.Key, seqs)
	if err != nil {
		return nil, nil, err
	}
	named, err = readStored(ctx, l.tx, l.Key, `
		SELECT seq, coalesce(client_id, ''), body, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND client_id = ANY ($3) AND `+namedSQL+`
		 ORDER BY seq`, l.Tenant, l.Key.Key, clients)
	return bySeq, named, err
}

var importSQL = statement("import_messages")

// Insert adds messages whose seqs are consecutive, behind those that the log has.
func (l *ImportedLog) Insert(ctx context.Context, format session.Format, messages []session.ImportedMessage) error {
	n := len(messages)
	a := session.Append{Format: format, Messages: make([]session.NewMessage, n)}
	created, removed := make([]*time.Time, n), make([]*time.Time, n)
	removedSeqs, superseded := make([]*int64, n), make([]*int64, n)
	pinned := 0 // at the beginning that are the system's or superseded
	for i := range messages {
		m := &messages[i]
		a.Messages[i] = m.NewMessage
		created[i] = m.CreatedAt
		if m.RemovedAt != nil {
			removed[i], removedSeqs[i] = m.RemovedAt, &m.RemovedSeq
		} else {
			l.bytes += int64(len(m.Body))
		}
		if m.SupersededBy > 0 {
			superseded[i] = &m.SupersededBy
		}
		if i == pinned && (m.Pinned || m.SupersededBy > 0) {
			pinned++
		}
	}
	l.row.lastSeq = messages[0].Seq - 1
	capped, err := l.store.capped(ctx, l.tx, l.row, a)
	if err != nil {
		return err
	}
	views, viewTokens := make([][]byte, n), make([]*int32, n)
	if capped != nil {
		views, viewTokens = capped.bodies, capped.tokens
	}
	args := []any{l.Tenant, l.Key.Key, messages[0].Seq, format.Number(), pinned}
	columns := columnsOf(a.Messages)
	args = append(args, columns.args()...)
	args = append(args, shapesOf(format.Number(), a.Messages, capped), views, viewTokens, created, removed, removedSeqs,
		itemsOf(a.Messages), superseded)
	l.row.lastSeq = messages[n-1].Seq
	return l.tx.QueryRow(ctx, importSQL, args...).Scan(&l.context)
}

// CompactIfDue asks for a compaction if the session is due. It does not wait for a cold cache: no provider has the
// imported messages in its cache.
func (l *ImportedLog) CompactIfDue(ctx context.Context) error {
	l.row.rule.Bytes += l.bytes
	reached, isDue := l.row.due(l.context)
	if !isDue {
		return nil
	}
	l.row.rule.ColdAfter, l.row.rule.IdleAfter = 0, 0
	_, err := l.store.askForCompaction(ctx, l.tx, l.row, reached, causes[reached])
	return err
}
