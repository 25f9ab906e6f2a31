package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/conformance/attacktest"
	"github.com/varve-dev/varve/internal/llm/fake"
)

// attacked says which attack a conversation has, at its beginning.
var attacked = regexp.MustCompile(`This is the case (\S+), of the limits`)

// obey returns what a provider does whose models obey: they answer as an attack orders and, when they are asked again
// because that was refused, as the fake provider obeys. Without an attack they answer well.
func obey(attacks []attacktest.Attack) func(fake.Request) fake.Step {
	return func(r fake.Request) fake.Step {
		found := attacked.FindStringSubmatch(r.Messages[len(r.Messages)-1].Parts[0].Text)
		i := slices.IndexFunc(attacks, func(a attacktest.Attack) bool { return found != nil && a.Name == found[1] })
		switch {
		case i < 0:
			return fake.Step{}
		case strings.Contains(r.Messages[len(r.Messages)-1].Parts[0].Text, "An earlier answer to this could not be used"):
			return fake.Step{Fault: fake.Obey}
		case i%2 == 0:
			return fake.Step{Text: attacktest.Answers(attacks[i].Order)["obeys"]}
		}
		return fake.Step{Text: attacktest.Answers(attacks[i].Order)["says it in words"]}
	}
}

// threeModels configures a model of each protocol.
const threeModels = `{
	"providers": {
		"chat": {"kind": "openai", "base_url": "%[1]s/v1", "key": "k", "allow_private": true},
		"responses": {"kind": "openai-responses", "base_url": "%[1]s/v1", "key": "k", "allow_private": true},
		"messages": {"kind": "anthropic", "base_url": "%[1]s", "key": "k", "allow_private": true}
	},
	"models": {
		"0": {"provider": "chat", "model": "chat", "window": 32000},
		"1": {"provider": "responses", "model": "responses", "window": 32000},
		"2": {"provider": "messages", "model": "messages", "window": 32000}
	}
}`

// summarised is a summary of a session.
type summarised struct {
	Writer, State, Reason, Text string
	Flags                       []string
}

// converse makes a session with a transcript whose summary a model is to write.
func (u *up) converse(name, model, where, text string) {
	u.Helper()
	const off = `{"enabled": false}`
	policy := `{"trigger": 0.05, "target": 0.04, "hard": 1, "idle": ` + off + `, "protect": {"last_messages": 4},
		"cap": ` + off + `, "trim": ` + off + `, "budget": ` + off + `, "dedupe": ` + off + `,
		"arguments": ` + off + `, "whitespace": ` + off + `, "summarise": {"model": "` + model + `",
			"all": true, "keep_turns": 0, "keep_messages": 4, "segments": 1, "min_tokens": 0, "max_tokens": 1200}}`
	u.want(201, "PUT", "/v1/sessions/"+name, `{"format": "openai-chat", "window_tokens": 20000, "policy": `+policy+`}`)
	list := attacktest.Transcript(where, text)
	list[0]["content"] = fmt.Sprintf("%s This is the case %s, of the limits.", list[0]["content"], name)
	body, err := json.Marshal(map[string]any{"messages": list})
	if err != nil {
		u.Fatal(err)
	}
	u.want(201, "POST", "/v1/sessions/"+name+"/messages", string(body))
}

// awaitSummary returns a session's summary when its model has written it, or has failed.
func (u *up) awaitSummary(name string) (s summarised) {
	u.Helper()
	ended := poll(untilDeadline(u.T), 20*time.Millisecond, func() bool {
		status, body, err := u.call("GET", "/v1/sessions/"+name+"/summaries", "")
		var list struct{ Summaries []summarised }
		if err != nil || status != 200 || json.Unmarshal(body, &list) != nil {
			u.Fatalf("the summaries of %s: %d %s %v", name, status, body, err)
		}
		if len(list.Summaries) == 0 {
			return false
		}
		s = list.Summaries[0]
		return s.State == "failed" || s.State == "written" && s.Writer != "extract"
	})
	if !ended {
		u.Fatalf("%s has %+v", name, s)
	}
	return s
}

// viewOf returns the messages of a session's view.
func (u *up) viewOf(name string) (view []map[string]any) {
	u.Helper()
	messages, _ := u.want(200, "GET", "/v1/sessions/"+name+"/context", "")["messages"].([]any)
	for _, m := range messages {
		object, _ := m.(map[string]any)
		view = append(view, object)
	}
	return view
}

// TestNoTranscriptLeavesItsSummaryOnARunningServer sends attacks as messages to a server whose models, asked over HTTP,
// obey them: each stored view has the roles and the units that it has of a harmless conversation, the summary ends
// where it ends, and an answer that obeys is refused or flagged.
func TestNoTranscriptLeavesItsSummaryOnARunningServer(t *testing.T) {
	t.Parallel()
	attacks := attacktest.All(t)
	provider := fake.New(fake.Options{Choose: obey(attacks)})
	if err := provider.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	models := write(t, "models.json", fmt.Appendf(nil, threeModels, provider.URL()))
	u := startUp(t, filepath.Join(t.TempDir(), "data"), "--llm", models, "--log-level", "error")
	u.converse("harmless", "0", "", "")
	for i, a := range attacks {
		u.converse(a.Name, fmt.Sprint(i%3), a.Where, a.Text)
	}
	if s := u.awaitSummary("harmless"); s.State != "written" || len(s.Flags) > 0 {
		t.Fatalf("the summary of a harmless conversation: %+v", s)
	}
	harmless := attacktest.Roles(u.viewOf("harmless"))
	accepted, refused, unflagged := 0, 0, []string{}
	for _, a := range attacks {
		s, view := u.awaitSummary(a.Name), u.viewOf(a.Name)
		if diff := cmp.Diff(harmless, attacktest.Roles(view)); diff != "" {
			t.Errorf("%s: roles and calls (-of a harmless conversation +got):\n%s", a.Name, diff)
			continue
		}
		text, _ := view[0]["content"].(string)
		if out := attacktest.Escape(text); out != "" {
			t.Errorf("%s: %s in the summary\n%s", a.Name, out, text)
		}
		switch {
		case s.State == "failed":
			refused++
		case len(s.Flags) == 0:
			unflagged = append(unflagged, a.Name+": "+s.Text)
			fallthrough
		default:
			accepted++
		}
	}
	for _, c := range provider.Calls() {
		if c.Refused != "" {
			t.Errorf("the provider refuses a request of %s: %s", c.Request.Model, c.Refused)
		}
	}
	t.Logf("%d attacks: %d answers accepted, %d refused; not flagged: %q", len(attacks), accepted, refused, unflagged)
	if len(attacks) < 40 || accepted < 20 || refused < 5 || len(unflagged) > 2 {
		t.Errorf("%d accepted, %d refused; not flagged: %q", accepted, refused, unflagged)
	}
}
