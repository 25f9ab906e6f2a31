package postgres

import (
	"context"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// storeMessages stores lines that are messages of one session and format. The first may have created the session: the
// session's own line may have been rejected, and the conversation must not be lost with it.
func (b *importing) storeMessages(ctx context.Context, lines []importLine) error {
	row, err := lockSession(ctx, b.tx, b.at(lines[0].Message.Session))
	if err != nil {
		return err
	}
	if lines[0].creates {
		b.Sessions++
	}
	log := importedLog{importing: b, row: row}
	if err := log.readHeld(ctx, lines); err != nil {
		return err
	}
	var fresh []*importLine
	for i := range lines {
		lines[i].key = row.Key.Key
		if log.isNew(&lines[i]) {
			fresh = append(fresh, &lines[i])
		}
	}
	consecutive := func(first, next *importLine, n int) bool { return next.seq == first.seq+int64(n) }
	for lines := range runsOf(fresh, consecutive) {
		if err := log.append(ctx, lines); err != nil {
			return err
		}
	}
	return log.compactIfDue(ctx)
}

// importedLog is the log of a session whose lock is held.
type importedLog struct {
	*importing
	row      lockedSession
	last     int64 // the seq of the last message, with those of this batch
	tail     int64 // bytes, with those of this batch
	bySeq    map[int64]storedMessage
	byClient map[string]storedMessage // by client id
	context  int64                    // tokens of the view
}

// readHeld reads the messages of the log that have the seq or the client id of a line.
func (l *importedLog) readHeld(ctx context.Context, lines []importLine) error {
	l.last, l.tail = l.row.lastSeq, l.row.tailBytes
	l.context = l.row.contextTokens
	l.bySeq, l.byClient = map[int64]storedMessage{}, map[string]storedMessage{}
	var seqs []int64
	var clients []string
	for i := range lines {
		if m := lines[i].Message; m.Seq > 0 && m.Seq <= l.last {
			seqs = append(seqs, m.Seq)
		}
		if id := lines[i].Message.ClientID; id != "" && l.last > 0 {
			clients = append(clients, id)
		}
		if id := lines[i].Message.After; i == 0 && id != nil && l.last > 0 {
			clients = append(clients, *id) // those of the other lines are among the lines
		}
	}
	if seqs == nil && clients == nil {
		return nil
	}
	bySeq, err := readStored(ctx, l.tx, l.row.Key, `
		SELECT seq, coalesce(client_id, ''), body, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq = ANY ($3)
		 ORDER BY seq`, l.tenant, l.row.Key.Key, seqs)
	if err != nil {
		return err
	}
	for _, m := range bySeq {
		l.bySeq[m.Seq] = m
	}
	named, err := readStored(ctx, l.tx, l.row.Key, `
		SELECT seq, coalesce(client_id, ''), body, digest
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND client_id = ANY ($3) AND `+namedSQL+`
		 ORDER BY seq`, l.tenant, l.row.Key.Key, clients)
	for _, m := range named {
		l.hold(m)
	}
	return err
}

// hold remembers a message that has its client id, if any: it was not superseded by another that has it now.
func (l *importedLog) hold(m storedMessage) {
	l.bySeq[m.Seq] = m
	if m.ClientID != "" {
		l.byClient[m.ClientID] = m
	}
}

// isNew reports whether a line's message must be appended, and gives it its seq. Otherwise it sets the line's outcome.
func (l *importedLog) isNew(line *importLine) bool {
	m := line.Message
	if held, ok := l.find(m); ok {
		compare(line, held)
		return false
	}
	if m.Seq > 0 && m.Seq <= l.last {
		line.Set(session.LineRejected,
			"the session's last seq is %d, and it has no message %d: leave seq out to append it", l.last, m.Seq)
		return false
	}
	if m.After != nil && !l.isLast(*m.After) {
		line.Set(session.LineRejected, "message %d is the session's last, "+
			"and not the one before this one in the file: "+
			"the session holds something else, import the file into another", l.last)
		return false
	}
	seq := max(m.Seq, l.last+1)
	if max(seq, m.RemovedSeq) > session.MaxSessionMessages || l.tail+int64(len(m.Body)) > session.MaxTailBytes {
		line.Set(session.LineRejected, "%s", session.ErrTooManyMessages)
		return false
	}
	line.seq, l.last = seq, seq
	if m.RemovedAt == nil {
		l.tail += int64(len(m.Body))
	}
	held := storedMessage{Seq: seq, ClientID: m.ClientID, Body: m.Body}
	if m.SupersededBy > m.RemovedSeq {
		l.bySeq[seq] = held
	} else {
		l.hold(held)
	}
	line.Set(session.LineStored, "")
	return true
}

// find returns the message of the log that has the seq of m, else the one that has its client id.
func (l *importedLog) find(m *session.ImportedMessage) (held storedMessage, ok bool) {
	held, ok = l.bySeq[m.Seq]
	if !ok && m.ClientID != "" && m.SupersededBy <= m.RemovedSeq {
		held, ok = l.byClient[m.ClientID]
	}
	return held, ok
}

// compare sets the outcome of a line whose seq or client id a message of the log has.
func compare(line *importLine, held storedMessage) {
	m := line.Message
	switch {
	case (m.Seq == 0 || m.Seq == held.Seq) && held.ClientID == m.ClientID && held.is(m.Body):
		line.seq = held.Seq
		line.Set(session.LineDuplicate, "")
	case m.Seq == held.Seq:
		line.Set(session.LineRejected, "the session has another message %d", m.Seq)
	default:
		line.Set(session.LineRejected, "the client_id names message %d of the session, which is another", held.Seq)
	}
}

// isLast reports whether the log's last message has a client id; "" asks whether there is no message.
func (l *importedLog) isLast(clientID string) bool {
	if clientID == "" {
		return l.last == 0
	}
	held, there := l.byClient[clientID]
	return there && held.Seq == l.last
}

// append adds messages whose seqs are consecutive.
func (l *importedLog) append(ctx context.Context, fresh []*importLine) error {
	first := fresh[0]
	a := session.Append{Session: l.at(first.Message.Session), Format: first.Message.Format}
	a.Messages = make([]session.NewMessage, len(fresh))
	for i, line := range fresh {
		a.Messages[i] = line.Message.NewMessage
	}
	l.row.lastSeq = first.seq - 1
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

var importSQL = statement("import_messages")

func importArgs(key session.Key, a session.Append, fresh []*importLine, capped *cappedViews) []any {
	n := len(fresh)
	views, viewTokens := make([][]byte, n), make([]*int32, n)
	if capped != nil {
		views, viewTokens = capped.bodies, capped.tokens
	}
	created, removed := make([]*time.Time, n), make([]*time.Time, n)
	removedSeqs, superseded := make([]*int64, n), make([]*int64, n)
	p := newAppendParams(a)
	p.pinned = 0
	for i, line := range fresh {
		m := line.Message
		created[i] = m.CreatedAt
		if m.RemovedAt != nil {
			removed[i], removedSeqs[i] = m.RemovedAt, &m.RemovedSeq
		}
		if m.SupersededBy > 0 {
			superseded[i] = &m.SupersededBy
		}
		if int64(i) == p.pinned && (m.Pinned || m.SupersededBy > 0) {
			p.pinned++
		}
	}
	args := []any{key.Tenant, key.Key, fresh[0].seq, p.format, p.pinned}
	args = append(args, p.messages.args()...)
	return append(args, shapesOf(p.format, a.Messages, capped), views, viewTokens, created, removed, removedSeqs,
		p.items, superseded)
}

// compactIfDue asks for a compaction if the session is due. It does not wait for a cold cache: no provider has the
// imported messages in its cache.
func (l *importedLog) compactIfDue(ctx context.Context) error {
	l.row.rule.Bytes += l.tail - l.row.tailBytes
	reached, isDue := l.row.due(l.context)
	if !isDue {
		return nil
	}
	l.row.rule.ColdAfter, l.row.rule.IdleAfter = 0, 0
	_, err := l.s.askForCompaction(ctx, l.tx, l.row, reached, causes[reached])
	return err
}
