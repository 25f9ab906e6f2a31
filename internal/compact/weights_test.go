package compact_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// TestWhatIsBesideTheTextsLeavesWithItsTurn compacts sessions of 20 turns whose messages are small but for one member
// of 12 kB that goes back to the provider.
func TestWhatIsBesideTheTextsLeavesWithItsTurn(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("sEaled9+Zx0/", 1000)
	for f, said := range map[session.Format][2]string{
		session.OpenAIChat: {`{"role":"user","content":"go on"}`,
			`{"role":"assistant","content":"done","reasoning_details":[{"type":"reasoning.encrypted","data":"` + large + `"}]}`},
		session.Anthropic: {`{"role":"user","content":"go on"}`,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"so","signature":"` + large + `"},{"type":"text","text":"done"}]}`},
		session.Gemini: {`{"role":"user","parts":[{"text":"go on"}]}`,
			`{"role":"model","parts":[{"text":"done","thoughtSignature":"` + large + `"}]}`},
		session.AISDK: {`{"id":"u%d","role":"user","parts":[{"type":"text","text":"go on"}]}`,
			`{"id":"a%d","role":"assistant","parts":[{"type":"text","text":"done","providerMetadata":{"google":{"thoughtSignature":"` + large + `"}}}]}`},
	} {
		in := compact.Input{Format: f, WindowTokens: 32_000, Policy: policy.Default()}
		total := 0
		for n := range 40 {
			body := []byte(strings.Replace(said[n%2], "%d", fmt.Sprint(n), 1))
			facts, err := wire.Inspect(f, body)
			if err != nil {
				t.Fatal(err)
			}
			total += facts.Tokens
			in.Tail = append(in.Tail, compact.Entry{Seq: int64(n + 1), Tokens: facts.Tokens, Body: body})
		}
		_, made, err := compact.Run(context.Background(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if total < 40_000 || made == nil || made.Tokens > 9_600 {
			t.Errorf("%s: %d tokens, of which the checkpoint has %+v", f, total, made)
		}
	}
}
