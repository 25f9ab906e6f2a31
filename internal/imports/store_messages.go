package imports

import (
	"context"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// storeMessages stores lines that are messages of one session and format. The first may have created the session: the
// session's own line may have been rejected, and the conversation must not be lost with it.
func (b *importing) storeMessages(ctx context.Context, lines []storedLine) error {
	locked, err := b.s.LockLog(ctx, b.tx, b.at(lines[0].Message.Session))
	if err != nil {
		return err
	}
	if lines[0].creates {
		b.Sessions++
	}
	log := importedLog{ImportedLog: locked, last: locked.LastSeq, tail: locked.TailBytes}
	if err := log.readHeld(ctx, lines); err != nil {
		return err
	}
	var fresh []*storedLine
	for i := range lines {
		lines[i].key = locked.Key.Key
		if log.isNew(&lines[i]) {
			fresh = append(fresh, &lines[i])
		}
	}
	consecutive := func(first, next *storedLine, n int) bool { return next.seq == first.seq+int64(n) }
	for run := range runsOf(fresh, consecutive) {
		messages := make([]session.ImportedMessage, len(run))
		for i, l := range run {
			messages[i] = l.Message.ImportedMessage
			messages[i].Seq = l.seq
		}
		if err := log.Insert(ctx, run[0].Message.Format, messages); err != nil {
			return err
		}
	}
	return log.CompactIfDue(ctx)
}

// importedLog is the log of a session whose lock is held.
type importedLog struct {
	*postgres.ImportedLog
	last     int64 // the seq of the last message, with those of this batch
	tail     int64 // bytes, with those of this batch
	bySeq    map[int64]postgres.StoredMessage
	byClient map[string]postgres.StoredMessage // by client id
}

// readHeld reads the messages of the log that have the seq or the client id of a line.
func (l *importedLog) readHeld(ctx context.Context, lines []storedLine) error {
	l.bySeq, l.byClient = map[int64]postgres.StoredMessage{}, map[string]postgres.StoredMessage{}
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
	bySeq, named, err := l.Held(ctx, seqs, clients)
	for _, m := range bySeq {
		l.bySeq[m.Seq] = m
	}
	for _, m := range named {
		l.hold(m)
	}
	return err
}

// hold remembers a message that has its client id, if any: it was not superseded by another that has it now.
func (l *importedLog) hold(m postgres.StoredMessage) {
	l.bySeq[m.Seq] = m
	if m.ClientID != "" {
		l.byClient[m.ClientID] = m
	}
}

// isNew reports whether a line's message must be appended, and gives it its seq. Otherwise it sets the line's outcome.
func (l *importedLog) isNew(line *storedLine) bool {
	m := line.Message
	if held, ok := l.find(m); ok {
		compare(line, held)
		return false
	}
	if m.Seq > 0 && m.Seq <= l.last {
		line.set(protocol.LineRejected,
			"the session's last seq is %d, and it has no message %d: leave seq out to append it", l.last, m.Seq)
		return false
	}
	if m.After != nil && !l.isLast(*m.After) {
		line.set(protocol.LineRejected, "message %d is the session's last, "+
			"and not the one before this one in the file: "+
			"the session holds something else, import the file into another", l.last)
		return false
	}
	seq := max(m.Seq, l.last+1)
	if max(seq, m.RemovedSeq) > session.MaxSessionMessages || l.tail+int64(len(m.Body)) > session.MaxTailBytes {
		line.set(protocol.LineRejected, "%s", session.ErrTooManyMessages)
		return false
	}
	line.seq, l.last = seq, seq
	if m.RemovedAt == nil {
		l.tail += int64(len(m.Body))
	}
	held := postgres.StoredMessage{Seq: seq, ClientID: m.ClientID, Body: m.Body}
	if m.SupersededBy > m.RemovedSeq {
		l.bySeq[seq] = held
	} else {
		l.hold(held)
	}
	line.set(protocol.LineStored, "")
	return true
}

// find returns the message of the log that has the seq of m, else the one that has its client id.
func (l *importedLog) find(m *message) (held postgres.StoredMessage, ok bool) {
	held, ok = l.bySeq[m.Seq]
	if !ok && m.ClientID != "" && m.SupersededBy <= m.RemovedSeq {
		held, ok = l.byClient[m.ClientID]
	}
	return held, ok
}

// compare sets the outcome of a line whose seq or client id a message of the log has.
func compare(line *storedLine, held postgres.StoredMessage) {
	m := line.Message
	switch {
	case (m.Seq == 0 || m.Seq == held.Seq) && held.ClientID == m.ClientID && held.Is(m.Body):
		line.seq = held.Seq
		line.set(protocol.LineDuplicate, "")
	case m.Seq == held.Seq:
		line.set(protocol.LineRejected, "the session has another message %d", m.Seq)
	default:
		line.set(protocol.LineRejected, "the client_id names message %d of the session, which is another", held.Seq)
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
