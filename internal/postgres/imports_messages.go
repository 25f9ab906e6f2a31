package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// messages stores lines that are messages of one session and format. A session that is not there is made: what a line
// says of it may have been rejected, and the conversation is not to be lost with it.
func (b *importing) messages(ctx context.Context, lines []importLine) error {
	first := lines[0].Message
	row, err := lockSession(ctx, b.tx, b.at(first.Session))
	if errors.Is(err, session.ErrNotFound) {
		created, insertErr := insertSession(ctx, b.tx, b.at(first.Session), session.Change{Format: &first.Format})
		if insertErr != nil {
			return insertErr
		}
		if created {
			b.Sessions++
		}
		row, err = lockSession(ctx, b.tx, b.at(first.Session))
	}
	if err != nil {
		return err
	}
	log := importedLog{importing: b, row: row}
	if err := log.look(ctx, lines); err != nil {
		return err
	}
	var fresh []*importLine
	for i := range lines {
		lines[i].key = row.Key.Key
		if log.isNew(&lines[i]) {
			fresh = append(fresh, &lines[i])
		}
	}
	for len(fresh) > 0 {
		n := 1
		for n < len(fresh) && fresh[n].seq == fresh[0].seq+int64(n) {
			n++
		}
		if err := log.append(ctx, fresh[:n]); err != nil {
			return err
		}
		fresh = fresh[n:]
	}
	return log.compactIfDue(ctx)
}

// importedLog is the log of a session whose lock is held.
type importedLog struct {
	*importing
	row      lockedSession
	last     int64 // the seq of the last message, those of this batch included
	tail     int64 // bytes
	bySeq    map[int64]heldMessage
	byClient map[string]heldMessage
	context  int64 // tokens of the view
}

// heldMessage is a message that is in the log.
type heldMessage struct {
	seq      int64
	clientID string
	body     []byte
}

// look reads what the log holds of the lines.
func (l *importedLog) look(ctx context.Context, lines []importLine) error {
	l.last, l.tail, l.context = l.row.lastSeq, l.row.tailBytes, l.row.contextTokens
	l.bySeq, l.byClient = map[int64]heldMessage{}, map[string]heldMessage{}
	var seqs []int64
	var clients []string
	for i := range lines {
		if m := lines[i].Message; m.Seq > 0 && m.Seq <= l.last {
			seqs = append(seqs, m.Seq)
		}
		if id := lines[i].Message.ClientID; id != "" && l.last > 0 {
			clients = append(clients, id)
		}
	}
	if seqs == nil && clients == nil {
		return nil
	}
	rows, err := l.tx.Query(ctx, `
		SELECT seq, coalesce(client_id, ''), body
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq = ANY ($3)
		UNION ALL
		SELECT seq, coalesce(client_id, ''), body
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND client_id = ANY ($4)`,
		[16]byte(l.tenant), [16]byte(l.row.Key.Key), seqs, clients)
	if err != nil {
		return err
	}
	var m heldMessage
	_, err = pgx.ForEachRow(rows, []any{&m.seq, &m.clientID, &m.body}, func() error {
		l.hold(m)
		m.body = nil
		return nil
	})
	return err
}

func (l *importedLog) hold(m heldMessage) {
	l.bySeq[m.seq] = m
	if m.clientID != "" {
		l.byClient[m.clientID] = m
	}
}

// isNew reports whether a line's message is to be appended, and gives it its seq; else it says what became of the line.
func (l *importedLog) isNew(line *importLine) bool {
	m := line.Message
	held, there := l.bySeq[m.Seq]
	if !there && m.ClientID != "" {
		held, there = l.byClient[m.ClientID]
	}
	switch {
	case there && (m.Seq == 0 || m.Seq == held.seq) && held.clientID == m.ClientID && bytes.Equal(held.body, m.Body):
		line.seq = held.seq
		line.Set(session.LineDuplicate, "")
		return false
	case there && m.Seq == held.seq:
		line.Set(session.LineRejected, "the session has another message %d", m.Seq)
		return false
	case there:
		line.Set(session.LineRejected, "the client_id names message %d of the session, which is another", held.seq)
		return false
	case m.Seq > 0 && m.Seq <= l.last:
		line.Set(session.LineRejected, "the session's last seq is %d, and it has no message %d: leave seq out to append it", l.last, m.Seq)
		return false
	}
	seq := max(m.Seq, l.last+1)
	if seq > session.MaxSessionMessages || m.RemovedSeq > session.MaxSessionMessages || l.tail+int64(len(m.Body)) > session.MaxTailBytes {
		line.Set(session.LineRejected, "%s", session.ErrTooManyMessages)
		return false
	}
	line.seq, l.last = seq, seq
	if m.RemovedAt == nil {
		l.tail += int64(len(m.Body))
	}
	l.hold(heldMessage{seq, m.ClientID, m.Body})
	line.Set(session.LineStored, "")
	return true
}

// append adds messages whose seqs follow each other.
func (l *importedLog) append(ctx context.Context, fresh []*importLine) error {
	a := session.Append{Session: l.at(fresh[0].Message.Session), Format: fresh[0].Message.Format, Messages: make([]session.NewMessage, len(fresh))}
	for i, line := range fresh {
		a.Messages[i] = line.Message.NewMessage
	}
	l.row.lastSeq = fresh[0].seq - 1
	capped, err := l.s.capped(ctx, l.tx, l.row, a)
	if err != nil {
		return err
	}
	if err := l.tx.QueryRow(ctx, importSQL, importArgs(l.row.Key, a, fresh, capped)...).Scan(&l.context); err != nil {
		return err
	}
	l.row.lastSeq = fresh[len(fresh)-1].seq
	return nil
}

// importSQL grows a session by messages that another log had: with their times, and those that were removed there.
//
//	$1 tenant  $2 session key  $3 first seq  $4 format  $5 how many are system messages from the first on
//	$6… arrays, one entry a message: roles, tokens, client ids, calls, answers, starts_unit, flags, bodies, what views show,
//	its tokens, created_at, removed_at, removed_seq
var importSQL = `
	WITH logged AS (
		INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, client_id, calls, answers, starts_unit, flags, body,
		                      view_body, view_tokens, created_at, removed_at, removed_seq, fact)
		SELECT $1, $2, $3 + m.n - 1, m.role, $4, m.tokens, m.client_id,
		       (string_to_array(m.calls, E'\x1f'))[2:], (string_to_array(m.answers, E'\x1f'))[2:], m.starts_unit, m.flags, m.body,
		       m.view_body, m.view_tokens, coalesce(m.created_at, now()), m.removed_at, m.removed_seq,
		       ` + shapeSQL(`$4`) + `
		  FROM unnest($6::text[], $7::int[], $8::text[], $9::text[], $10::text[], $11::bool[], $12::int[], $13::bytea[],
		              $14::bytea[], $15::int[], $16::timestamptz[], $17::timestamptz[], $18::bigint[])
		       WITH ORDINALITY AS m (role, tokens, client_id, calls, answers, starts_unit, flags, body,
		                             view_body, view_tokens, created_at, removed_at, removed_seq, n)
		RETURNING seq, tokens, view_tokens, octet_length(body) AS bytes, created_at, removed_at
	), grown AS (
		SELECT max(seq) AS last_seq, max(created_at) AS at,
		       coalesce(sum(tokens) FILTER (WHERE removed_at IS NULL), 0) AS tokens,
		       coalesce(sum(coalesce(view_tokens, tokens)) FILTER (WHERE removed_at IS NULL), 0) AS shown,
		       coalesce(sum(bytes) FILTER (WHERE removed_at IS NULL), 0) AS bytes
		  FROM logged
	)
	UPDATE sessions s
	   SET last_seq = g.last_seq,
	       pinned = CASE WHEN s.pinned = s.last_seq AND $5 > 0 THEN $3 + $5 - 1 ELSE s.pinned END,
	       tail_bytes = s.tail_bytes + g.bytes,
	       context_tokens = s.context_tokens + g.shown,
	       total_tokens = s.total_tokens + g.tokens,
	       format = CASE WHEN s.format = 0 THEN $4 ELSE s.format END,
	       last_append_at = greatest(s.last_append_at, g.at)
	  FROM grown g
	 WHERE s.tenant_id = $1 AND s.key = $2
	RETURNING s.context_tokens`

func importArgs(key session.Key, a session.Append, fresh []*importLine, capped *cappedViews) []any {
	n := len(fresh)
	views, viewTokens := make([][]byte, n), make([]*int32, n)
	if capped != nil {
		views, viewTokens = capped.bodies, capped.tokens
	}
	created, removed, removedSeqs := make([]*time.Time, n), make([]*time.Time, n), make([]*int64, n)
	for i, line := range fresh {
		created[i] = line.Message.CreatedAt
		if line.Message.RemovedAt != nil {
			removed[i], removedSeqs[i] = line.Message.RemovedAt, &line.Message.RemovedSeq
		}
	}
	p := newAppendParams(a)
	args := []any{[16]byte(key.Tenant), [16]byte(key.Key), fresh[0].seq, p.format, p.pinned}
	args = append(args, p.messages.args()...)
	return append(args, views, viewTokens, created, removed, removedSeqs)
}

// compactIfDue asks for a compaction if the session is due. No provider has what was imported in its cache, so it waits for
// none.
func (l *importedLog) compactIfDue(ctx context.Context) error {
	reached, isDue := l.row.due(l.context)
	if !isDue {
		return nil
	}
	l.row.cacheTTL = 0
	_, err := l.s.askForCompaction(ctx, l.tx, l.row, reached, causes[reached])
	return err
}
