package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
)

const (
	shortHistory = 1_000
	longHistory  = 100_000
	newMessages  = 20 // after the checkpoint
)

// measureIncremental compacts two sessions that have a checkpoint and the same newest messages: one has seen a hundred
// times as many. Their views are alike, so the two compactions should cost the same.
func measureIncremental(ctx context.Context, b *bench) error {
	defer oneCore()()
	for _, f := range session.Formats() {
		name := fmt.Sprintf("engine, %s, next compaction after %d messages, time beside after %d", f, longHistory, shortHistory)
		if !b.wants(name) {
			continue
		}
		b.progress("%s", name)
		long, err := generated(f, longHistory, 0)
		if err != nil {
			return err
		}
		old, err := grown(long)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		young, err := grown(newest(long, shortHistory))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		ours, floor, err := b.alternate(ctx, func() error { return runOnce(old) }, func() error { return runOnce(young) })
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.add(row{Name: name, Value: ours.Seconds() / floor.Seconds(), Unit: "times", Goal: atMost(1.2)})
		b.note("%s: %.2f ms for a view of %d kB and a state of %d kB, %.2f ms for %d kB and %d kB", name,
			milliseconds(ours), bytesOf(old)/1000, len(old.Base.State)/1000, milliseconds(floor), bytesOf(young)/1000, len(young.Base.State)/1000)
	}
	return nil
}

var question = []byte(`{"role":"user","content":"`)

// newest is a conversation that began with the last question of another that n messages or more came after.
func newest(c *compacttest.Conversation, n int) *compacttest.Conversation {
	from := len(c.Messages) - n
	for from > 0 && !bytes.HasPrefix(c.Messages[from], question) {
		from--
	}
	return &compacttest.Conversation{Format: c.Format, Messages: c.Messages[from:], Tokens: c.Tokens[from:]}
}

// grown is a session as its next compaction finds it: it was compacted whenever it was due, and once more newMessages
// before its end, where the checkpoint is.
func grown(c *compacttest.Conversation) (compact.Input, error) {
	r := newReplay(c.Format, compact.DefaultPolicy(), fixedWindow)
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
