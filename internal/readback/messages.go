package readback

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/transcript"
)

// Run is a run of messages of the log that a ref names.
type Run struct {
	Ref      session.MessagesRef // of these messages
	Next     session.MessagesRef // of those that the run has no room for, zero if there are none
	Messages int
	Tokens   int64
	Text     []byte // for a model to read: each message under a heading with its seq and role
	Stored   []byte // as they were appended: one message, or a JSON array of several
}

// runLimit is how much of the log one run has.
var runLimit = postgres.Range{Limit: 1_000, Bytes: 8 << 20}

// Messages returns the messages that a ref names, as far as one answer has room for them.
//
// Errors: ErrNotFound, with the messages that the session has.
func Messages(ctx context.Context, store *postgres.Store, at session.Address, ref session.MessagesRef) (*Run, error) {
	page := runLimit
	page.After, page.To = ref.First-1, ref.Last
	of, found, err := store.Messages(ctx, at, page)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("messages %s: %w; the session has messages 1 to %d",
			ref, session.ErrNotFound, of.LastSeq)
	}
	last := found[len(found)-1].Seq
	run := &Run{Ref: session.MessagesRef{First: found[0].Seq, Last: last}, Messages: len(found)}
	if end := min(ref.Last, of.LastSeq); last < end && full(page, found) {
		run.Next = session.MessagesRef{First: last + 1, Last: end}
	}
	run.read(found)
	return run, nil
}

// full reports whether a page ended because it had no more room.
func full(page postgres.Range, found []session.Message) bool {
	size := int64(0)
	for i := range found {
		size += int64(len(found[i].Body))
	}
	return len(found) == page.Limit || size > page.Bytes
}

func (r *Run) read(messages []session.Message) {
	bodies := make([][]byte, len(messages))
	var text strings.Builder
	for i := range messages {
		m := &messages[i]
		bodies[i] = m.Body
		r.Tokens += int64(m.Tokens)
		text.WriteString(transcript.Message(m.Format, m.Body, m.Seq))
	}
	r.Text = []byte(strings.TrimPrefix(text.String(), "\n"))
	if r.Stored = bytes.Join(bodies, []byte{','}); r.Ref.First != r.Ref.Last {
		r.Stored = append(append([]byte{'['}, r.Stored...), ']')
	}
}
