package view

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

// TestWhatIsTooMuchToCountIsEstimatedAsTheRestWas has two equal messages of which one is counted.
func TestWhatIsTooMuchToCountIsEstimatedAsTheRestWas(t *testing.T) {
	t.Parallel()
	body := []byte(`{"role":"user","content":"` + strings.Repeat("z", 4000) + `"}`)
	x := &exact{ctx: t.Context(), calibration: 1, read: tokens.MaxExact - len(body)/2}
	counted, err := x.inspect(session.OpenAIChat, body)
	if err != nil {
		t.Fatal(err)
	}
	estimated, err := x.inspect(session.OpenAIChat, body)
	if err != nil || estimated.Tokens < counted.Tokens || estimated.Parts[0].Tokens < 1900 {
		t.Errorf("%d tokens were counted, %d estimated, %v", counted.Tokens, estimated.Tokens, err)
	}
	if counted.Tokens < 1900 {
		t.Errorf("%d tokens", counted.Tokens)
	}
}
