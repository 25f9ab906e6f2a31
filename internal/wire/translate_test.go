package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// appendedPart is a part of a message as it was appended.
type appendedPart struct{ message, part int }

// TestATranslatedPartSaysWhereItWasAppended translates conversations, wild ones, too, between every two formats: every
// call and every result of the translation is one of the log, the same in kind, call and text, and is there once.
func TestATranslatedPartSaysWhereItWasAppended(t *testing.T) {
	t.Parallel()
	for _, from := range session.Formats() {
		for _, target := range session.Formats() {
			if from == target {
				continue
			}
			t.Run(fmt.Sprintf("%s as %s", from, target), func(t *testing.T) {
				t.Parallel()
				known := 0
				for seed := range uint64(12) {
					options := compacttest.Options{Messages: 1 + int(seed), ResultTokens: 20, Wild: seed%2 == 0, Steps: int(seed % 3)}
					bodies := compacttest.Session(rand.New(rand.NewPCG(seed, 17)), from, options)
					known += checkOrigins(t, from, target, bodies, options.Wild)
				}
				if known < 60 {
					t.Errorf("only %d parts could be compared", known)
				}
			})
		}
	}
}

// checkOrigins returns how many parts have an origin.
func checkOrigins(t *testing.T, from, target session.Format, bodies [][]byte, wild bool) (known int) {
	t.Helper()
	run := stored(from, bodies)
	list, err := wire.Translate(context.Background(), target, run)
	if err != nil {
		t.Fatal(err)
	}
	taken := map[appendedPart]bool{}
	for _, m := range list {
		found, err := wire.Inspect(target, m.Body)
		if err != nil || len(found.Parts) != len(m.Origins) {
			t.Fatalf("%d origins of %d parts, %v: %s", len(m.Origins), len(found.Parts), err, m.Body)
		}
		for i, at := range m.Origins {
			part := &found.Parts[i]
			if at.Part < 0 {
				if made := target == session.AISDK && part.Kind == wire.Call && wild; !made && (part.Kind == wire.Call || part.Kind == wire.Result) {
					t.Errorf("nobody knows where %s %s comes from: %s", part.Kind, part.CallID, m.Body)
				}
				continue
			}
			known++
			if place := (appendedPart{at.Message, at.Part}); taken[place] {
				t.Errorf("part %v was appended once, and is there twice", place)
			} else {
				taken[place] = true
			}
			sameAsAppended(t, run[at.Message], at.Part, m.Stored, part)
		}
	}
	return known
}

func sameAsAppended(t *testing.T, log wire.Stored, n int, m wire.Stored, part *wire.Part) {
	t.Helper()
	facts, err := wire.Inspect(log.Format, log.Body)
	if err != nil || n >= len(facts.Parts) {
		t.Fatalf("message %d has no part %d, %v: %s", log.Seq, n, err, log.Body)
	}
	was := &facts.Parts[n]
	if was.Index != n || was.Kind != part.Kind || was.CallID != part.CallID {
		t.Errorf("part %d of message %d is %s %q, in the translation it is %s %q\n%s\n%s", n, log.Seq, was.Kind, was.CallID, part.Kind, part.CallID, log.Body, m.Body)
		return
	}
	before, after := wire.ResultText(log.Format, log.Body, *was), wire.ResultText(m.Format, m.Body, *part)
	if was.Kind == wire.Text && !bytes.Equal(before.Text, after.Text) {
		t.Errorf("text %d of message %d is another in the translation", n, log.Seq)
	}
	words := func(c wire.Content) []string { return wordsOf(c.Text) }
	value := was.Value.Of(log.Body)
	if plain := len(value) > 0 && value[0] == '"'; plain && was.Kind == wire.Result && !was.IsError && !slices.Equal(words(before), words(after)) {
		t.Errorf("result %d of message %d is another in the translation:\n%q\n%q", n, log.Seq, before.Text, after.Text)
	}
}

// wordsOf returns what two forms of a text have in common: a format may join its blocks by line feeds.
func wordsOf(text []byte) (words []string) {
	for _, word := range bytes.Fields(text) {
		words = append(words, string(word))
	}
	return words
}
