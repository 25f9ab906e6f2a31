package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Differences compares messages with those that a session's views have of its log, and returns the replacement after
// which views have them and no others: what the two have in common at their beginning stays. Messages are the same if
// they have equal bodies, white space and the order of members aside, and no two different client ids. Leading system
// messages of the log stay if the messages begin with none.
//
// Errors: ErrNotFound, *session.DamagedError.
func Differences(ctx context.Context, store *postgres.Store, a session.Append) (r session.Replacement, err error) {
	log, err := store.Outline(ctx, a.Session, 1, len(a.Messages)+1, a.Messages[0].Pinned)
	if err != nil {
		return r, err
	}
	c := comparison{store: store, log: log, format: a.Format}
	kept, err := c.common(ctx, a.Messages)
	if err != nil {
		return r, err
	}
	r = session.Replacement{
		Session: a.Session, Seen: log.LastSeq, ExpectedSeq: a.ExpectedSeq, Idempotency: a.Idempotency,
		UsageIgnored: a.UsageIgnored, Warnings: a.Warnings,
	}
	if kept < len(log.Entries) {
		r.From = log.Entries[kept].Seq
	}
	if a.Messages = a.Messages[kept:]; len(a.Messages) > 0 {
		a.ExpectedSeq, a.Idempotency = nil, nil
		r.Appends = []session.Append{a}
	}
	return r, nil
}

// comparison compares messages with those of a log.
type comparison struct {
	store  *postgres.Store
	log    session.Outline
	format session.Format
	bodies map[int64][]byte // canonical ones by seq, of those that were read
}

// common returns how many messages at the beginning are those of the log.
func (c *comparison) common(ctx context.Context, messages []session.NewMessage) (int, error) {
	for i := range min(len(messages), len(c.log.Entries)) {
		same, err := c.same(ctx, i, &messages[i])
		if err != nil || !same {
			return i, err
		}
	}
	return min(len(messages), len(c.log.Entries)), nil
}

// same reports whether message i of the log is m. Its body is read only if it has other bytes.
func (c *comparison) same(ctx context.Context, i int, m *session.NewMessage) (bool, error) {
	e := &c.log.Entries[i]
	if e.Format != c.format || e.ClientID != "" && m.ClientID != "" && e.ClientID != m.ClientID {
		return false, nil
	}
	if sum := sha256.Sum256(m.Body); bytes.Equal(e.Digest, sum[:]) {
		return true, nil
	}
	stored, ok := c.bodies[e.Seq]
	if !ok {
		if err := c.read(ctx, c.log.Entries[i:]); err != nil {
			return false, err
		}
		stored = c.bodies[e.Seq]
	}
	return bytes.Equal(stored, rawjson.AppendCanonical(nil, m.Body)), nil
}

// comparedBytes bounds the bodies that are compared at once.
const comparedBytes = 1 << 20

// read reads the bodies of the first of these messages, and those of as many behind it as are compared at once.
func (c *comparison) read(ctx context.Context, entries []session.Entry) error {
	var seqs []int64
	size := int64(0)
	for _, e := range entries {
		if size += e.Bytes; size > comparedBytes && len(seqs) > 0 {
			break
		}
		seqs = append(seqs, e.Seq)
	}
	found, err := c.store.MessagesAt(ctx, c.log.Key, seqs)
	c.bodies = make(map[int64][]byte, len(found))
	for i := range found {
		c.bodies[found[i].Seq] = rawjson.AppendCanonical(nil, found[i].Body)
	}
	return err
}

// Followed is a message of a session's views with those behind it.
type Followed struct {
	session.Outline
	Behind []session.Message
}

// Change returns the replacement after which views have m in the place of the message, and what is behind it as it was.
//
// Errors: *session.DamagedError, *InvalidError.
func (f *Followed) Change(ctx context.Context, store *postgres.Store, a session.Append) (
	r session.Replacement, err error,
) {
	r = session.Replacement{
		Session: a.Session, Seen: f.LastSeq, ExpectedSeq: a.ExpectedSeq, Idempotency: a.Idempotency,
		UsageIgnored: a.UsageIgnored, Warnings: a.Warnings,
	}
	c := comparison{store: store, log: f.Outline, format: a.Format}
	same, err := c.same(ctx, 0, &a.Messages[0])
	if err != nil || same {
		return r, err
	}
	r.From = f.Entries[0].Seq
	r.Appends = []session.Append{{Session: a.Session, Format: a.Format, Messages: a.Messages}}
	for i := range f.Behind {
		if r.Appends, err = appendAgain(r.Appends, &f.Behind[i]); err != nil {
			return r, err
		}
	}
	r.Appends[len(r.Appends)-1].Usage = a.Usage
	return r, nil
}

// appendAgain adds a message of the log to appends, of which each has one format.
func appendAgain(appends []session.Append, m *session.Message) ([]session.Append, error) {
	read, err := Message(m.Format, m.Body)
	if err != nil {
		return nil, err
	}
	read.ClientID = m.ClientID
	last := &appends[len(appends)-1]
	if last.Format != m.Format {
		appends = append(appends, session.Append{Session: last.Session, Format: m.Format})
		last = &appends[len(appends)-1]
	}
	last.Messages = append(last.Messages, read)
	return appends, nil
}
