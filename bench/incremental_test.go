package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

const (
	shortHistory = 1_000
	longHistory  = 100_000
	newMessages  = 20 // after the checkpoint
	candidates   = 40 // sessions with a short history, of which the one with the most similar view is taken
)

// BenchmarkIncremental compacts two sessions that have a checkpoint and the same newest messages: one has seen a
// hundred times as many. Their views are similar, so the two compactions should cost the same.
func BenchmarkIncremental(b *testing.B) {
	for _, f := range session.Formats() {
		name := fmt.Sprintf("%s, next compaction after %d messages, time beside after %d", f, longHistory, shortHistory)
		beside(b, name, func() work {
			long := generated(b, f, longHistory, 0)
			old := grown(b, long)
			young := similar(b, old, long)
			b.Logf("views of %d and %d kB, states of %d and %d kB", bytesOf(old)/1000, bytesOf(young)/1000,
				len(old.Base.State)/1000, len(young.Base.State)/1000)
			return work{bytesOf(old), func() error { return runOnce(old) }, func() error { return runOnce(young) }}
		})
	}
}

// similar returns, of sessions that began about shortHistory messages before the end, the one whose next compaction
// has a view and a state of nearly the same sizes: these depend on where a session began.
func similar(tb testing.TB, old compact.Input, long *compacttest.Conversation) (best compact.Input) {
	tb.Helper()
	bestDistance := math.Inf(1)
	for i := range candidates {
		in := grown(tb, newest(long, shortHistory+10*(i-candidates/2)))
		if in.Base == nil {
			continue
		}
		distance := difference(bytesOf(in), bytesOf(old)) + difference(len(in.Base.State), len(old.Base.State))
		if distance < bestDistance {
			best, bestDistance = in, distance
		}
	}
	if best.Base == nil {
		tb.Fatal("no short history reaches its trigger")
	}
	return best
}

func difference(a, b int) float64 { return math.Abs(math.Log(float64(a) / float64(b))) }

// newest returns the end of a conversation: its last question that n or more messages follow, and these.
func newest(c *compacttest.Conversation, n int) *compacttest.Conversation {
	from := len(c.Messages) - n
	for from > 0 && !isQuestion(c.Format, c.Messages[from]) {
		from--
	}
	return &compacttest.Conversation{Format: c.Format, Messages: c.Messages[from:], Tokens: c.Tokens[from:]}
}

func isQuestion(f session.Format, body []byte) bool {
	found, err := wire.Inspect(f, body)
	return err == nil && found.Role == "user" && found.StartsUnit && found.Flags&wire.FlagMixed == 0
}

// grown returns a session as its next compaction finds it: it was compacted whenever it was due, and once more
// newMessages before its end, where the checkpoint is.
func grown(tb testing.TB, c *compacttest.Conversation) compact.Input {
	tb.Helper()
	list := entries(c)
	before := len(list) - newMessages
	in, err := replay.Grow(replayedSession(c, before), replay.Under(replay.Default, policy.Default()), fixedWindow)
	if err != nil {
		tb.Fatal(err)
	}
	if _, in.Base, err = compact.Run(context.Background(), in, nil); err != nil {
		tb.Fatal(err)
	}
	in.Tail = slices.DeleteFunc(list, func(e compact.Entry) bool { return e.Seq <= in.Base.Through })
	return in
}

// replayedSession returns the first n messages of a conversation.
func replayedSession(c *compacttest.Conversation, n int) *replay.Session {
	s := &replay.Session{Name: c.ID, Format: c.Format}
	for _, e := range entries(c)[:n] {
		s.Messages = append(s.Messages, replay.Message{Seq: e.Seq, Body: e.Body, Tokens: e.Tokens})
	}
	return s
}

// entries returns a conversation as the engine takes it.
func entries(c *compacttest.Conversation) []compact.Entry {
	list := make([]compact.Entry, len(c.Messages))
	for i, body := range c.Messages {
		list[i] = compact.Entry{Seq: int64(i + 1), Tokens: c.Tokens[i], Body: body}
	}
	return list
}

func runOnce(in compact.Input) error {
	_, _, err := compact.Run(context.Background(), in, nil)
	return err
}
