package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

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

// BenchmarkLinear compares a session with ten that have a tenth of its messages each, drawn from the same mix: the floor
// is one of them after another, so that a ratio of 10 is exactly linear.
func BenchmarkLinear(b *testing.B) {
	for _, f := range session.Formats() {
		for _, messages := range []int{10_000, 100_000} {
			for _, window := range []int{fixedWindow, ownWindow} {
				beside(b, growthName(f, messages, window), func() work { return growth(b, f, messages, window) })
			}
		}
	}
}

func growthName(f session.Format, messages, window int) string {
	in := "a window of 128k"
	if window == ownWindow {
		in = "a window that grows along"
	}
	return fmt.Sprintf("%s, %d messages beside %d, %s", f, messages, messages/10, in)
}

func growth(tb testing.TB, f session.Format, messages, window int) work {
	one := []compact.Input{inputOf(generated(tb, f, messages, 0), window)}
	ten := make([]compact.Input, 10)
	for i := range ten {
		ten[i] = inputOf(generated(tb, f, messages/10, uint64(i)+1), window)
	}
	turn := 0
	return work{bytesOf(one...), inTurn(one, compactOnce), func() error {
		turn++
		return compactOnce(ten[turn%len(ten)])
	}}
}

// generated makes up a conversation, the same for the same arguments.
func generated(tb testing.TB, f session.Format, messages int, seed uint64) *compacttest.Conversation {
	tb.Helper()
	options := compacttest.Options{Messages: messages, ResultTokens: resultTokens}
	random := rand.New(rand.NewPCG(seed, uint64(messages)))
	c := &compacttest.Conversation{Format: f, Messages: compacttest.Session(random, f, options)}
	for _, body := range c.Messages {
		found, err := wire.Inspect(f, body)
		if err != nil {
			tb.Fatal(err)
		}
		c.Tokens = append(c.Tokens, found.Tokens)
	}
	return c
}
