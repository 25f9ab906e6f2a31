package peers

import (
	"encoding/json"
	"strings"
	"testing"
)

// refused are views that providers or packages refuse, by format and model, and a word of what must be found.
var refused = []struct{ format, model, messages, want string }{
	{"anthropic", "claude-sonnet-4-5", `{"role":"user","content":"u"},{"role":"assistant","id":"msg_1","content":"x"}`, "1/id is an unknown member"},
	{"anthropic", "claude-sonnet-4-5", `{"role":"user","content":[{"type":"hologram"}]}`, "of no known type"},
	{"anthropic", "claude-opus-4-6", `{"role":"user","content":"u"},{"role":"assistant","content":"x"}`, "does not end with the user"},
	{"anthropic", "", `{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"my tool","input":{}}]}`, "the tool's name"},
	{"openai-chat", "gpt-5", `{"role":"user","content":"u"},{"role":"assistant","content":"x","tool_calls":[]}`, "tool_calls is empty"},
	{"openai-chat", "gpt-5", `{"role":"user","content":"u"},{"role":"tool","tool_call_id":"a","content":"r"}`, "answers no call"},
	{"openai-chat", "mistral-large-latest", `{"role":"user","content":"u"},{"role":"assistant","content":"x","reasoning_content":"y"},{"role":"user","content":"u"}`, "1/reasoning_content is an unknown member"},
	{"openai-responses", "gpt-5", `{"role":"user","content":"u","metadata":{}}`, "0/metadata is an unknown member"},
	{"openai-responses", "gpt-5", `{"type":"function_call","id":"a","call_id":"a","name":"f","arguments":"{}"}`, "does not begin with fc"},
	{"gemini", "gemini-2.5-pro", `{"role":"user","parts":[{"hologram":1}]}`, "hologram is an unknown member"},
	{"gemini", "gemini-3-pro", `{"role":"user","parts":[{"text":"u"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`, "no thoughtSignature"},
	{"ai-sdk", "", `{"id":"m","role":"user","parts":[]}`, "validateUIMessages"},
	{"ai-sdk", "claude-sonnet-4-5", `{"id":"m","role":"user","parts":[{"type":"text","text":"  "}]}`, "a text of white space"},
	{"ai-sdk", "gemini-2.5-pro", `{"id":"m","role":"assistant","parts":[{"type":"text","text":"x"}]}`, "not the user's"},
}

// TestTheRulesOfOthersRefuse makes sure that the checks see what they are for.
func TestTheRulesOfOthersRefuse(t *testing.T) {
	t.Parallel()
	c := Start(t)
	for _, r := range refused {
		v := &View{Format: r.format, Models: []string{r.model}, Pipe: true}
		if err := json.Unmarshal([]byte("["+r.messages+"]"), &v.Messages); err != nil {
			t.Fatal(err)
		}
		var found []string
		violations, err := c.Check(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, violation := range violations {
			found = append(found, violation.At+" "+violation.What)
		}
		if !strings.Contains(strings.Join(found, "\n"), r.want) {
			t.Errorf("%s for %q, %s: found %q, want %q", r.format, r.model, r.messages, found, r.want)
		}
	}
}
