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

// In a window that grows with it a session keeps all its messages to be shortened; in a fixed one nearly all of a long
// session is summarised.
const (
	fixedWindow = 128_000
	ownWindow   = 0
)

// resultTokens makes 100,000 messages about 100 MB.
const resultTokens = 75

// measureLinearity compares a session with ten that have a tenth of its messages each: both sides have the same work,
// drawn from the same mix.
func measureLinearity(ctx context.Context, b *bench) error {
	defer oneCore()()
	for _, f := range session.Formats() {
		for _, messages := range []int{10_000, 100_000} {
			if err := b.measureGrowth(ctx, f, messages); err != nil {
				return err
			}
		}
	}
	return nil
}

func growthName(f session.Format, messages, window int) string {
	in := "a window of 128k"
	if window == ownWindow {
		in = "a window that grows along"
	}
	return fmt.Sprintf("engine, %s, %d messages beside %d, %s", f, messages, messages/10, in)
}

func (b *bench) measureGrowth(ctx context.Context, f session.Format, messages int) error {
	var large *compacttest.Conversation
	small := make([]*compacttest.Conversation, 10)
	for _, window := range []int{fixedWindow, ownWindow} {
		name := growthName(f, messages, window)
		if !b.wants(name) {
			continue
		}
		b.progress("%s", name)
		if large == nil {
			var err error
			if large, err = generated(f, messages, 0); err != nil {
				return err
			}
			for i := range small {
				if small[i], err = generated(f, messages/10, uint64(i)+1); err != nil {
					return err
				}
			}
		}
		ten := make([]compact.Input, len(small))
		for i := range ten {
			ten[i] = inputOf(small[i], window)
		}
		if err := b.compareGrowth(ctx, name, []compact.Input{inputOf(large, window)}, ten); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (b *bench) compareGrowth(ctx context.Context, name string, one, ten []compact.Input) error {
	compactOne, compactTen := inTurn(one, compactOnce), inTurn(ten, compactOnce)
	tookOne, tookTen, err := b.alternateHere(ctx, compactOne, compactTen)
	if err != nil {
		return err
	}
	usedOne, err := memoryOf(compactOne)
	if err != nil {
		return err
	}
	usedTen, err := memoryOf(compactTen)
	if err != nil {
		return err
	}
	time := 10 * tookOne.Seconds() / tookTen.Seconds()
	b.add(row{Name: name + ": time", Value: time, Unit: "times", Goal: atMost(12)})
	allocated := 10 * float64(usedOne.bytes) / float64(usedTen.bytes)
	b.add(row{Name: name + ": allocated", Value: allocated, Unit: "times", Goal: atMost(12)})
	b.note("%s: %.1f MB in %.0f ms, allocating %.0f MB; ten sessions of %.1f MB together in %.0f ms, allocating %.0f MB",
		name, megabytes(bytesOf(one...)), milliseconds(tookOne), megabytes(usedOne.bytes),
		megabytes(bytesOf(ten...)), milliseconds(tookTen), megabytes(usedTen.bytes))
	return nil
}

// generated makes up a conversation, the same for the same arguments.
func generated(f session.Format, messages int, seed uint64) (*compacttest.Conversation, error) {
	options := compacttest.Options{Messages: messages, ResultTokens: resultTokens}
	random := rand.New(rand.NewPCG(seed, uint64(messages)))
	c := &compacttest.Conversation{Format: f, Messages: compacttest.Session(random, f, options)}
	for _, body := range c.Messages {
		found, err := wire.Inspect(f, body)
		if err != nil {
			return nil, err
		}
		c.Tokens = append(c.Tokens, found.Tokens)
	}
	return c, nil
}
