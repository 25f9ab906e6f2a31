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

// A session in a window of its own keeps all its messages to be shortened, however many they are; in a fixed one nearly
// all of a long session is left to the summary.
const (
	fixedWindow = 128_000
	ownWindow   = 0
)

// growth is a session beside ten with a tenth of its messages each: both sides have the same to do, drawn from the same
// mix.
type growth struct {
	format   session.Format
	messages int
	large    *compacttest.Conversation
	small    []*compacttest.Conversation
}

func (g *growth) name(window int) string {
	in := "a window of 128k"
	if window == ownWindow {
		in = "a window that grows along"
	}
	return fmt.Sprintf("engine, %s, %d messages beside %d, %s", g.format, g.messages, g.messages/10, in)
}

// resultTokens makes 100,000 messages about 100 MB.
const resultTokens = 75

// measureLinearity compares sessions with ten times the messages.
func measureLinearity(ctx context.Context, b *bench) error {
	defer oneCore()()
	for _, f := range session.Formats() {
		for _, messages := range []int{10_000, 100_000} {
			g := growth{format: f, messages: messages}
			for _, window := range []int{fixedWindow, ownWindow} {
				if !b.wants(g.name(window)) {
					continue
				}
				b.progress("%s", g.name(window))
				if err := b.measureGrowth(ctx, &g, window); err != nil {
					return fmt.Errorf("%s: %w", g.name(window), err)
				}
			}
		}
	}
	return nil
}

func (b *bench) measureGrowth(ctx context.Context, g *growth, window int) error {
	if err := g.generate(); err != nil {
		return err
	}
	large, small := []compact.Input{inputOf(g.large, window)}, make([]compact.Input, len(g.small))
	for i := range small {
		small[i] = inputOf(g.small[i], window)
	}
	one, ten := inTurn(large, compactOnce), inTurn(small, compactOnce)
	tookOne, tookTen, err := b.alternate(ctx, one, ten)
	if err != nil {
		return err
	}
	usedOne, err := memoryOf(one)
	if err != nil {
		return err
	}
	usedTen, err := memoryOf(ten)
	if err != nil {
		return err
	}
	b.add(row{Name: g.name(window) + ": time", Value: 10 * tookOne.Seconds() / tookTen.Seconds(), Unit: "times", Goal: atMost(12)})
	b.add(row{Name: g.name(window) + ": allocated", Value: 10 * float64(usedOne.bytes) / float64(usedTen.bytes), Unit: "times", Goal: atMost(12)})
	b.note("%s: %.1f MB in %.0f ms, allocating %.0f MB; ten sessions of %.1f MB together in %.0f ms, allocating %.0f MB", g.name(window),
		megabytes(bytesOf(large...)), milliseconds(tookOne), megabytes(usedOne.bytes), megabytes(bytesOf(small...)), milliseconds(tookTen), megabytes(usedTen.bytes))
	return nil
}

func megabytes[N int | uint64](bytes N) float64 { return float64(bytes) / 1e6 }

// generate makes the sessions if they are not there yet.
func (g *growth) generate() (err error) {
	if g.large != nil {
		return nil
	}
	g.small = make([]*compacttest.Conversation, 10)
	for i := range g.small {
		if g.small[i], err = generated(g.format, g.messages/10, uint64(i)+1); err != nil {
			return err
		}
	}
	g.large, err = generated(g.format, g.messages, 0)
	return err
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
