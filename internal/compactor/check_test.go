package compactor

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/pin"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
)

func TestARenditionThatDoesNotStandForItsMessagesIsRefused(t *testing.T) {
	t.Parallel()
	const (
		user   = `{"role":"user","content":"read it"}`
		call   = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"Read","arguments":"{}"}}]}`
		result = `{"role":"tool","tool_call_id":"c","content":"all of it"}`
		short  = `{"role":"tool","tool_call_id":"c","content":"[trimmed]"}`
		orphan = `{"role":"tool","tool_call_id":"x","content":"[trimmed]"}`
	)
	in := compact.Input{Format: session.OpenAIChat}
	for i, body := range []string{user, call, result} {
		in.Tail = append(in.Tail, compact.Entry{Seq: int64(i + 1), Body: []byte(body)})
	}
	for name, test := range map[string]struct {
		body []string
		ok   bool
	}{
		"one with a shorter result":                   {[]string{user, call, short}, true},
		"one without its first message":               {[]string{call, short}, false},
		"one in another order":                        {[]string{call, user, short}, false},
		"one whose result answers another call":       {[]string{user, call, orphan}, false},
		"one with nothing in it":                      {nil, false},
		"one that is no JSON":                         {[]string{user, call, `{"role":`}, false},
		"one with a message that has lost its calls":  {[]string{user, `{"role":"assistant","content":"x"}`, short}, false},
		"one with a message that was there only once": {[]string{user, call, short, short}, false},
	} {
		_, err := check(t.Context(), &in, false, &compact.Checkpoint{Through: 3, Body: []byte(strings.Join(test.body, ","))})
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOneMessageMayStandForARunOfThem(t *testing.T) {
	t.Parallel()
	const (
		system  = `{"role":"system","content":"be brief"}`
		user    = `{"role":"user","content":"read it"}`
		call    = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"Read","arguments":"{}"}}]}`
		result  = `{"role":"tool","tool_call_id":"c","content":"all of it"}`
		answer  = `{"role":"assistant","content":"done"}`
		summary = `{"role":"user","content":"a summary"}`
	)
	in := compact.Input{Format: session.OpenAIChat}
	for i, body := range []string{system, answer, call, result, user, answer} {
		in.Tail = append(in.Tail, compact.Entry{Seq: int64(i + 1), Body: []byte(body)})
	}
	for name, test := range map[string]struct {
		do   compact.ActionKind
		body []string
		ok   bool
	}{
		"a summary of the first three":         {compact.Summarise, []string{system, summary, user, answer}, true},
		"a notice of all but the user's":       {compact.Drop, []string{system, summary, user}, true},
		"a summary that no action tells of":    {compact.Blank, []string{system, summary, user, answer}, false},
		"words that the system never said":     {compact.Summarise, []string{system, system, user, answer}, false},
		"three messages in the place of three": {compact.Summarise, []string{system, summary, summary, summary, user, answer}, false},
		"a summary that leaves a result alone": {compact.Summarise, []string{system, summary, result, user, answer}, false},
	} {
		plan := &compact.Plan{Actions: []compact.Action{{Kind: test.do}}}
		_, err := check(t.Context(), &in, evicts(plan), &compact.Checkpoint{Through: 6, Body: []byte(strings.Join(test.body, ","))})
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThePrefixThatIsKeptEndsWithTheLastUnitThatIsTheSame(t *testing.T) {
	t.Parallel()
	made := &compact.Checkpoint{
		Body:  []byte(`{"a":1},{"b":2},{"c":3}`),
		Units: []compact.Unit{{Offset: 0, Tokens: 5}, {Offset: 8, Tokens: 7}, {Offset: 16, Tokens: 11}},
	}
	for served, want := range map[string]int64{
		`{"a":1},{"b":2},{"c":3}`:         23,
		`{"a":1},{"b":2},{"c":3},{"d":4}`: 23,
		`{"a":1},{"b":2},{"c":4}`:         12,
		`{"a":1},{"b":2}`:                 12,
		`{"a":1},{"b":`:                   5,
		`{"a":2}`:                         0,
		``:                                0,
	} {
		c := comparison{made: made.Body}
		c.add([]byte(served))
		if c.same() != (served == string(made.Body)) {
			t.Errorf("%s: the same %t", served, c.same())
		}
		if got := keptOf(c.common, made); got != want {
			t.Errorf("%s: %d tokens are kept, want %d", served, got, want)
		}
	}
}

func TestARenditionWithoutAPinIsRefused(t *testing.T) {
	t.Parallel()
	body := []byte(`{"role":"user","content":"never \"push\"\nto main"},{"role":"assistant","content":"ok"}`)
	r, err := view.NewRendition(t.Context(), session.OpenAIChat, body)
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{"never \"push\"\nto main": true, "\"push\"": true, "never push": false} {
		plan := &compact.Plan{Pins: []compact.Pin{{Ref: "m1", Seq: 1, Part: session.WholeMessage, Text: text}}}
		if err := checkPins(r, plan); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAPinnedMessageMayHaveBecomeSeveral(t *testing.T) {
	t.Parallel()
	whole := compact.Entry{Seq: 1, Body: []byte(`{"id":"m","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"one"},` +
		`{"type":"tool-Read","toolCallId":"c","state":"output-available","input":{},"output":"two"},{"type":"step-start"},{"type":"text","text":"three"}]}`)}
	found, err := wire.Inspect(session.AISDK, whole.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := pin.TextOf(session.AISDK, whole.Body, &found, session.WholeMessage)
	var steps []string
	for _, e := range compact.Divide(session.AISDK, whole) {
		steps = append(steps, string(e.Body))
	}
	r, err := view.NewRendition(t.Context(), session.AISDK, []byte(strings.Join(steps, ",")))
	if err != nil || len(steps) != 2 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	plan := &compact.Plan{Pins: []compact.Pin{{Ref: "m1", Seq: 1, Part: session.WholeMessage, Text: text}}}
	if err := checkPins(r, plan); err != nil {
		t.Error(err)
	}
}
