package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

const (
	shortHistory = 1_000
	longHistory  = 100_000
	newMessages  = 20 // after the checkpoint
	candidates   = 40 // sessions with a short history, of which the one with the most similar view is taken
)

// measureIncremental compacts two sessions that have a checkpoint and the same newest messages: one has seen a hundred
// times as many. Their views are similar, so the two compactions should cost the same.
func measureIncremental(ctx context.Context, b *bench) error {
	defer oneCore()()
	for _, f := range session.Formats() {
		name := fmt.Sprintf("engine, %s, next compaction after %d messages", f, longHistory)
		if !b.wants(name) {
			continue
		}
		b.progress("%s", name)
		if err := b.measureNext(ctx, name, f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (b *bench) measureNext(ctx context.Context, name string, f session.Format) error {
	long, err := generated(f, longHistory, 0)
	if err != nil {
		return err
	}
	old, err := grown(long)
	if err != nil {
		return err
	}
	young, err := similar(old, long)
	if err != nil {
		return err
	}
	next := func() error { return runOnce(old) }
	ours, other, err := b.alternateHere(ctx, next, func() error { return runOnce(young) })
	if err != nil {
		return err
	}
	beside := fmt.Sprintf("%s, time beside after %d", name, shortHistory)
	b.add(row{Name: beside, Value: ours.Seconds() / other.Seconds(), Unit: "times", Goal: atMost(1.2)})
	b.note("%s: %.2f ms for a view of %d kB with a state of %d kB; after %d, %.2f ms for %d kB with %d kB",
		name, milliseconds(ours), bytesOf(old)/1000, len(old.Base.State)/1000,
		shortHistory, milliseconds(other), bytesOf(young)/1000, len(young.Base.State)/1000)
	ours, floor, err := b.alternateHere(ctx, next, func() error { return validateOnce(old) })
	if err != nil {
		return err
	}
	size := bytesOf(old)
	b.add(row{Name: name, Value: perSecond(size, ours), Unit: "MB/s"}.beside(perSecond(size, floor)))
	return nil
}

// similar returns, of sessions that began about shortHistory messages before the end, the one whose next compaction has a
// view and a state of nearly the same sizes: these depend on where a session began.
func similar(old compact.Input, long *compacttest.Conversation) (best compact.Input, err error) {
	bestDistance := math.Inf(1)
	for i := range candidates {
		in, err := grown(newest(long, shortHistory+10*(i-candidates/2)))
		if err != nil {
			return best, err
		}
		if in.Base == nil {
			continue
		}
		distance := difference(bytesOf(in), bytesOf(old)) + difference(len(in.Base.State), len(old.Base.State))
		if distance < bestDistance {
			best, bestDistance = in, distance
		}
	}
	if best.Base == nil {
		return best, errors.New("no short history reaches its trigger")
	}
	return best, nil
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

// grown returns a session as its next compaction finds it: it was compacted whenever it was due, and once more newMessages
// before its end, where the checkpoint is.
func grown(c *compacttest.Conversation) (compact.Input, error) {
	r := newReplay(c.Format, policy.Default(), fixedWindow)
	list := entries(c)
	before := len(list) - newMessages
	for _, e := range list[:before] {
		if err := r.append(e); err != nil {
			return compact.Input{}, err
		}
	}
	if err := r.compact(); err != nil {
		return compact.Input{}, err
	}
	in := r.input()
	in.Tail = append(in.Tail, list[before:]...)
	return in, nil
}

func runOnce(in compact.Input) error {
	_, _, err := compact.Run(in, nil)
	return err
}
