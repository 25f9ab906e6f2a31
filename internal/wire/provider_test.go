package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// idConversations have a call of the id %[1]s and its result, in each format whose ids have a limit.
var idConversations = map[session.Format][]string{
	session.OpenAIChat: {
		`{"role":"user","content":"u"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"%[1]s","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"%[1]s","content":"r"}`,
		`{"role":"user","content":"v"}`,
	},
	session.OpenAIResponses: {
		`{"role":"user","content":"u"}`,
		`{"type":"function_call","call_id":"%[1]s","name":"f","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"%[1]s","output":"r"}`,
		`{"role":"user","content":"v"}`,
	},
	session.Anthropic: {
		`{"role":"user","content":"u"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"%[1]s","name":"f","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"%[1]s","content":"r"}]}`,
		`{"role":"assistant","content":"v"}`,
	},
}

// TestValidatorRepairsAndFastValidatorAgreeOnTheLengthOfIDs has ids at the limit and one beyond it. Lengths are
// counted in characters, not in bytes.
func TestValidatorRepairsAndFastValidatorAgreeOnTheLengthOfIDs(t *testing.T) {
	t.Parallel()
	for f, bodies := range idConversations {
		limit, letters := 64, []string{"a", "\u00e9"}
		switch f {
		case session.OpenAIChat:
			limit = 40
		case session.Anthropic:
			letters = letters[:1]
		}
		for _, letter := range letters {
			for _, n := range []int{limit, limit + 1} {
				var view [][]byte
				for _, body := range bodies {
					if strings.Contains(body, "%") {
						body = fmt.Sprintf(body, strings.Repeat(letter, n))
					}
					view = append(view, []byte(body))
				}
				fits := n == limit
				if got := len(wiretest.Validate(f, view, wire.Options{})) == 0; got != fits {
					t.Errorf("%s: the validator takes an id of %d %s: %t", f, n, letter, got)
				}
				if got := len(wiretest.Render(f, stored(f, view), wire.Options{}).Repairs) == 0; got != fits {
					t.Errorf("%s: an id of %d %s needs no repair: %t", f, n, letter, got)
				}
				if got := validated(f, stored(f, view), 0).Valid(""); got != fits {
					t.Errorf("%s: the fast validator takes an id of %d %s: %t", f, n, letter, got)
				}
			}
		}
	}
}

// TestADevelopersMessageAtTheHeadIsASystemPrompt holds where the system prompt is separate: it needs no repair, and the
// fast validator knows that.
func TestADevelopersMessageAtTheHeadIsASystemPrompt(t *testing.T) {
	t.Parallel()
	view := [][]byte{[]byte(`{"role":"developer","content":"s"}`), []byte(`{"role":"user","content":"u"}`)}
	for _, f := range []session.Format{session.Anthropic, session.Gemini} {
		if f == session.Gemini {
			view = [][]byte{[]byte(`{"role":"developer","parts":[{"text":"s"}]}`), []byte(`{"role":"user","parts":[{"text":"u"}]}`)}
		}
		made := wiretest.Render(f, stored(f, view), wire.Options{})
		if len(made.Repairs) > 0 || made.System != 1 || !bytes.Equal(bytes.Join(made.Bodies, nil), bytes.Join(view, nil)) {
			t.Errorf("%s: the view is rendered as %s with repairs %v", f, made.Bodies, made.Repairs)
		}
		if !validated(f, stored(f, view), 0).Valid("") {
			t.Errorf("%s: the fast validator does not take it", f)
		}
		late := [][]byte{view[1], view[0], view[1]}
		if validated(f, stored(f, late), 0).Valid("") {
			t.Errorf("%s: the fast validator takes a system prompt in the middle", f)
		}
	}
}
