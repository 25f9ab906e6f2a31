package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// thinks returns a turn of the assistant that thinks, and calls what is not "".
func thinks(id string) string {
	call := `{"type":"text","text":"so"}`
	if id != "" {
		call = `{"type":"tool_use","id":"` + id + `","name":"f","input":{}}`
	}
	return `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},` + call + `]}`
}

func answers(id string) string {
	return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"ok"}]}`
}

// TestThinkingLeavesTheMessagesBehindAChange names the seqs of the messages that keep their thinking.
func TestThinkingLeavesTheMessagesBehindAChange(t *testing.T) {
	t.Parallel()
	const asked = `{"role":"user","content":"go"}`
	for name, test := range map[string]struct {
		log     []string
		model   string
		changed []wire.Seqs
		keep    string
	}{
		"nothing has changed":              {[]string{asked, thinks("a"), answers("a"), thinks("")}, "claude-fable-5-1", nil, "2 4"},
		"a model that binds nothing":       {[]string{asked, thinks("a"), answers("a"), thinks("")}, "claude-opus-4-8", []wire.Seqs{{Through: 9}}, "2 4"},
		"all before a commit":              {[]string{asked, thinks("a"), answers("a"), thinks("b"), answers("b"), thinks("")}, "claude-fable-5-1", []wire.Seqs{{Through: 2}}, "4 6"},
		"the answer right behind it":       {[]string{asked, thinks("a"), answers("a"), thinks("b"), answers("b"), thinks("")}, "claude-fable-5-1", []wire.Seqs{{Through: 3}}, "6"},
		"what is before a gap":             {[]string{asked, thinks("a"), answers("a"), thinks(""), asked, thinks("")}, "anthropic/claude-opus-5.5", []wire.Seqs{{After: 3, Through: 4}}, "2 6"},
		"a late result":                    {[]string{asked, thinks("a"), asked, thinks(""), answers("a"), asked, thinks(""), asked}, "claude-mythos-5-1", nil, "2 7"},
		"the answer right behind a result": {[]string{asked, thinks("a"), asked, thinks(""), answers("a"), thinks(""), asked, thinks(""), asked}, "claude-mythos-5-1", nil, "2 8"},
		"a message of thinking alone":      {[]string{asked, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}`, asked, thinks(""), asked}, "claude-fable-5-1", []wire.Seqs{{Through: 2}}, "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := storedOf(session.Anthropic, test.log)
			for i := range view {
				view[i].Seq = int64(i + 1)
				view[i].Body = []byte(strings.ReplaceAll(string(view[i].Body), `"s"`, fmt.Sprintf(`"s%d"`, i+1)))
			}
			made := wiretest.Render(session.Anthropic, view, wire.Options{Model: test.model, Unbound: test.changed})
			var kept []string
			for i := range view {
				for _, body := range made.Bodies {
					if strings.Contains(string(body), fmt.Sprintf(`"s%d"`, i+1)) {
						kept = append(kept, fmt.Sprint(i+1))
					}
				}
			}
			if got := strings.Join(kept, " "); got != test.keep {
				t.Errorf("thinking of %s stays, want %s", got, test.keep)
			}
			if found := wiretest.Validate(session.Anthropic, made.Bodies, wire.Options{Model: test.model}); len(found) > 0 && test.keep != "2 4" {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestClaudeBindsItsThinkingFrom51On(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{
		"claude-fable-5-1": true, "claude-fable-5.2": true, "us.anthropic.claude-opus-5-5-v1:0": true, "claude-haiku-5-5@20261001": true,
		"anthropic/claude-sonnet-5.5": true, "claude-opus-6": true, "claude-fable-5": false, "claude-opus-5": false,
		"claude-opus-4-8": false, "claude-sonnet-4-5-20250929": false, "claude-3-5-haiku": false, "gpt-5.1": false, "": false,
	} {
		if got := provider.BindsThinking(model); got != want {
			t.Errorf("%s: %t", model, got)
		}
	}
}
