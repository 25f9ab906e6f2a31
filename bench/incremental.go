package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

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
	candidates   = 40 // sessions with a short history, of which the one whose view is the most alike is taken
)

// measureIncremental compacts two sessions that have a checkpoint and the same newest messages: one has seen a hundred
// times as many. Their views are alike, so the two compactions should cost the same.
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
	young, err := alike(old, long)
	if err != nil {
		return err
	}
	next := func() error { return runOnce(old) }
	ours, other, err := b.alternate(ctx, next, func() error { return runOnce(young) })
	if err != nil {
		return err
	}
	b.add(row{Name: fmt.Sprintf("%s, time beside after %d", name, shortHistory), Value: ours.Seconds() / other.Seconds(), Unit: "times", Goal: atMost(1.2)})
	b.note("%s: %.2f ms for a view of %d kB with a state of %d kB; after %d, %.2f ms for %d kB with %d kB", name, milliseconds(ours),
		bytesOf(old)/1000, len(old.Base.State)/1000, shortHistory, milliseconds(other), bytesOf(young)/1000, len(young.Base.State)/1000)
	ours, floor, err := b.alternate(ctx, next, func() error { return validateView(old) })
	if err != nil {
		return err
	}
	b.add(row{Name: name, Value: perSecond(bytesOf(old), ours), Unit: "MB/s"}.beside(perSecond(bytesOf(old), floor)))
	return nil
}

// alike is, of sessions that began about shortHistory messages before the end, the one whose next compaction has a view
// and a state of nearly the same sizes: where a session stands between two compactions depends on where it began.
func alike(old compact.Input, long *compacttest.Conversation) (best compact.Input, err error) {
	least := math.Inf(1)
	for i := range candidates {
		in, err := grown(newest(long, shortHistory+10*(i-candidates/2)))
		if err != nil {
			return best, err
		}
		if in.Base == nil {
			continue
		}
		if d := apart(bytesOf(in), bytesOf(old)) + apart(len(in.Base.State), len(old.Base.State)); d < least {
			best, least = in, d
		}
	}
	if best.Base == nil {
		return best, errors.New("no short history comes to its trigger")
	}
	return best, nil
}

func apart(a, b int) float64 { return math.Abs(math.Log(float64(a) / float64(b))) }

// newest is a conversation that began with the last question of another that n messages or more came after.
func newest(c *compacttest.Conversation, n int) *compacttest.Conversation {
	from := len(c.Messages) - n
	for from > 0 && !asks(c.Format, c.Messages[from]) {
		from--
	}
	return &compacttest.Conversation{Format: c.Format, Messages: c.Messages[from:], Tokens: c.Tokens[from:]}
}

// asks reports whether a message is a question of the user.
func asks(f session.Format, body []byte) bool {
	found, err := wire.Inspect(f, body)
	return err == nil && found.Role == "user" && found.StartsUnit && found.Flags&wire.FlagMixed == 0
}

// grown is a session as its next compaction finds it: it was compacted whenever it was due, and once more newMessages
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

// validateView is validateOnce for a session with a checkpoint.
func validateView(in compact.Input) error {
	if !json.Valid(slices.Concat([]byte{'['}, in.Base.Body, []byte{']'})) {
		return errors.New("the checkpoint is not JSON")
	}
	return validateOnce(in)
}

func runOnce(in compact.Input) error {
	_, _, err := compact.Run(in, nil)
	return err
}
