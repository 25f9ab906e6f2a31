package llm

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/rawjson"
)

// turn is a message as all providers understand it. Each call in a turn of the assistant has its result in the next
// turn, which has nothing else; all other calls and results are text.
type turn struct {
	role    string // system, user, assistant, or tool for results
	text    string
	calls   []summary.Part
	results []summary.Part
}

// The roles of turns.
const (
	system    = "system"
	user      = "user"
	assistant = "assistant"
	tool      = "tool"
)

func roleOf(role string) string {
	switch role {
	case "assistant", "model":
		return assistant
	case "system", "developer":
		return system
	}
	return user
}

// turnsOf returns the turns of a dialogue. Providers refuse a call without a result, a result without a call, a name
// they do not allow, an empty text: such parts are text, or left out.
func turnsOf(d summary.Dialogue) (turns []turn) {
	if strings.TrimSpace(d.System) != "" {
		turns = append(turns, turn{role: system, text: d.System})
	}
	seen := map[string]bool{}
	for i := 0; i < len(d.Messages); i++ {
		m := d.Messages[i]
		answered := answers(d.Messages[i+1:])
		t := turn{role: roleOf(m.Role)}
		var texts []string
		for _, p := range m.Parts {
			if t.role == assistant && p.Kind == summary.Call && callable(p) && answered[p.CallID] && !seen[p.CallID] {
				seen[p.CallID] = true
				p.Text = string(rawjson.Whole([]byte(p.Text))) // providers refuse half of a surrogate pair
				t.calls = append(t.calls, p)
			} else if text := textOf(p); strings.TrimSpace(text) != "" {
				texts = append(texts, text)
			}
		}
		t.text = strings.Join(texts, "\n")
		if t.text != "" || len(t.calls) > 0 {
			turns = append(turns, t)
		}
		if len(t.calls) > 0 {
			followed, read := results(t.calls, d.Messages[i+1:])
			turns = append(turns, followed...)
			i += read
		}
	}
	return turns
}

// answers returns the ids of the calls that the messages at once after them answer.
func answers(after []summary.Message) map[string]bool {
	ids := map[string]bool{}
	for _, m := range after {
		if !hasResult(m) {
			break
		}
		for _, p := range m.Parts {
			ids[p.CallID] = ids[p.CallID] || p.Kind == summary.Result
		}
	}
	return ids
}

// hasResult reports whether a message of the user or of a tool has a result.
func hasResult(m summary.Message) bool {
	for _, p := range m.Parts {
		if p.Kind == summary.Result {
			return roleOf(m.Role) == user
		}
	}
	return false
}

// results returns the turn with the results of calls, and one of the user with everything else that the messages with
// these results have, and how many messages these are.
func results(calls []summary.Part, after []summary.Message) (turns []turn, read int) {
	open := map[string]bool{}
	for _, call := range calls {
		open[call.CallID] = true
	}
	found := turn{role: tool}
	var texts []string
	for len(open) > 0 {
		for _, p := range after[read].Parts {
			if p.Kind == summary.Result && open[p.CallID] {
				delete(open, p.CallID)
				found.results = append(found.results, p)
			} else if text := textOf(p); strings.TrimSpace(text) != "" {
				texts = append(texts, text)
			}
		}
		read++
	}
	turns = []turn{found}
	if len(texts) > 0 {
		turns = append(turns, turn{role: user, text: strings.Join(texts, "\n")})
	}
	return turns, read
}

var (
	toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	callID   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// callable reports whether all providers take a call as one: its arguments must be an object.
func callable(p summary.Part) bool {
	var arguments map[string]json.RawMessage
	return toolName.MatchString(p.Tool) && callID.MatchString(p.CallID) &&
		json.Unmarshal([]byte(p.Text), &arguments) == nil && arguments != nil
}

// textOf returns a part as text. Reasoning is not sent.
func textOf(p summary.Part) string {
	switch p.Kind {
	case summary.Call:
		return "[calls " + p.Tool + "]\n" + p.Text
	case summary.Result:
		return "[result of " + p.Tool + "]\n" + p.Text
	case summary.Reasoning:
		return ""
	}
	return p.Text
}
