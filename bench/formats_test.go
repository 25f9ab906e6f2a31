package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

func TestTheStructsLoseNothingOfAConversation(t *testing.T) {
	t.Parallel()
	t.Run("openai-chat", testStruct[chatStruct](session.OpenAIChat))
	t.Run("anthropic", testStruct[anthropicStruct](session.Anthropic))
	t.Run("openai-responses", testStruct[itemStruct](session.OpenAIResponses))
	t.Run("gemini", testStruct[contentStruct](session.Gemini))
	t.Run("ai-sdk", testStruct[uiStruct](session.AISDK))
}

func testStruct[T any](f session.Format) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		for _, body := range madeUp(f, 100_000) {
			var m T
			if err := json.Unmarshal(body, &m); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(&m)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, body), decoded(t, again)); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

func decoded(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestWhatIsEncodedIsAWholeConversation(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			bodies := madeUp(f, 100_000)
			s, err := newSpoken(f, [][]wire.Stored{storedOf(f, bodies)})
			if err != nil {
				t.Fatal(err)
			}
			written := wire.Encode(f, s.neutrals[0])
			if len(written) != len(bodies) {
				t.Errorf("%d messages of %d", len(written), len(bodies))
			}
			if share := float64(sizeOf(written)) / float64(s.size); share < 0.95 || share > 1.1 {
				t.Errorf("%d bytes of %d", sizeOf(written), s.size)
			}
			if diff := cmp.Diff(shownTexts(f, bodies), shownTexts(f, written)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// shownTexts are the texts of all messages, a line each.
func shownTexts(f session.Format, bodies [][]byte) string {
	var lines strings.Builder
	var add func(pieces []wire.Block)
	add = func(pieces []wire.Block) {
		for _, p := range pieces {
			fmt.Fprintf(&lines, "%s%s\n", p.Text, p.Value)
			add(p.Content)
		}
	}
	for _, body := range bodies {
		for _, n := range wire.Decode(f, body) {
			add(n.Blocks)
		}
	}
	return lines.String()
}

func TestLongRecordedConversationsArePreferredToMadeUpOnes(t *testing.T) {
	t.Parallel()
	long := compacttest.Conversation{Format: session.Anthropic, Messages: madeUp(session.Anthropic, 600_000)}
	short := compacttest.Conversation{Format: session.Gemini, Messages: madeUp(session.Gemini, 10_000)}
	recorded := []compacttest.Conversation{long, short, long}
	for f, want := range map[session.Format]string{session.Anthropic: "2 recorded", session.Gemini: "made up", session.AISDK: "made up"} {
		views, what := viewsOf(f, recorded)
		if what != want {
			t.Errorf("%s: %s, not %s", f, what, want)
		}
		for _, view := range views {
			if len(view) == 0 || view[0].Format != f {
				t.Errorf("%s: a view of %d messages of another format", f, len(view))
			}
		}
	}
}
