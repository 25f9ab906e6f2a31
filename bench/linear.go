package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// linearCase sets one session beside ten with a tenth of its messages each. Both sides have the same messages to do,
// drawn from the same mix.
type linearCase struct {
	messages int
	window   int // 0: as large as the session needs, so that all its messages are still there to be shortened
}

const fixedWindow = 128_000

var linearCases = []linearCase{{10_000, fixedWindow}, {100_000, fixedWindow}, {10_000, 0}, {100_000, 0}}

func (l linearCase) name(f session.Format) string {
	window := "a window of 128k"
	if l.window == 0 {
		window = "a window that grows along"
	}
	return fmt.Sprintf("engine, %s, %d messages beside %d, %s", f, l.messages, l.messages/10, window)
}

// resultTokens makes 100,000 messages about 100 MB.
const resultTokens = 75

// measureLinearity compares sessions with ten times the messages.
func measureLinearity(ctx context.Context, b *bench) error {
	defer oneCore()()
	for _, f := range session.Formats() {
		for _, l := range linearCases {
			if !b.wants(l.name(f)) {
				continue
			}
			if err := b.measureGrowth(ctx, f, l); err != nil {
				return fmt.Errorf("%s: %w", l.name(f), err)
			}
		}
	}
	return nil
}

func (b *bench) measureGrowth(ctx context.Context, f session.Format, l linearCase) error {
	b.progress("%s", l.name(f))
	one, err := generated(f, l.messages, 0)
	if err != nil {
		return err
	}
	large, small := inputOf(one, l.window), make([]compact.Input, 10)
	smallBytes := 0
	for i := range small {
		c, err := generated(f, l.messages/10, uint64(i)+1)
		if err != nil {
			return err
		}
		small[i] = inputOf(c, l.window)
		smallBytes += bytesOf(small[i])
	}
	ours := func() error { return compactOnce(large) }
	tenth := func() error {
		for _, in := range small {
			if err := compactOnce(in); err != nil {
				return err
			}
		}
		return nil
	}
	took, ten, err := b.alternate(ctx, ours, tenth)
	if err != nil {
		return err
	}
	b.add(row{Name: l.name(f) + ": time", Value: 10 * took.Seconds() / ten.Seconds(), Unit: "times", Goal: atMost(12)})
	inOne, err := memoryOf(ours)
	if err != nil {
		return err
	}
	inTen, err := memoryOf(tenth)
	if err != nil {
		return err
	}
	b.add(row{Name: l.name(f) + ": allocated", Value: 10 * float64(inOne.bytes) / float64(inTen.bytes), Unit: "times", Goal: atMost(12)})
	b.note("%s: %.1f MB in %.0f ms, allocating %.0f MB; ten sessions with %.1f MB in %.0f ms, allocating %.0f MB", l.name(f),
		float64(bytesOf(large))/1e6, milliseconds(took), float64(inOne.bytes)/1e6, float64(smallBytes)/1e6, milliseconds(ten), float64(inTen.bytes)/1e6)
	return ctx.Err()
}

// generated is a made-up conversation: always the same for the same arguments.
func generated(f session.Format, messages int, seed uint64) (*compacttest.Conversation, error) {
	options := compacttest.Options{Messages: messages, ResultTokens: resultTokens}
	c := &compacttest.Conversation{Format: f, Messages: compacttest.Session(rand.New(rand.NewPCG(seed, uint64(messages))), f, options)}
	for _, body := range c.Messages {
		found, err := wire.Inspect(f, body)
		if err != nil {
			return nil, err
		}
		c.Tokens = append(c.Tokens, found.Tokens)
	}
	return c, nil
}
