package llm

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compact/summary"
)

var update = flag.Bool("update", false, "write the requests in testdata anew")

func message(role string, parts ...summary.Part) summary.Message {
	return summary.Message{Role: role, Parts: parts}
}

func text(s string) summary.Part { return summary.Part{Kind: summary.Text, Text: s} }

func call(id, tool, arguments string) summary.Part {
	return summary.Part{Kind: summary.Call, CallID: id, Tool: tool, Text: arguments}
}

func result(id, tool, output string) summary.Part {
	return summary.Part{Kind: summary.Result, CallID: id, Tool: tool, Text: output}
}

// whole is a dialogue with everything that providers take in different ways, and what none of them takes.
var whole = summary.Dialogue{
	System: "Summarise.", MaxTokens: 900,
	Messages: []summary.Message{
		message("system", text("Be brief.")),
		message("assistant", text("I look.")),
		message("user", text("Fix <the> test."), summary.Part{Kind: summary.Other, Text: "[image/png, 512 bytes]"}),
		message("assistant", summary.Part{Kind: summary.Reasoning, Text: "hm"}, text("Two calls."),
			call("c1", "read", `{"path":"a.go"}`), call("c2", "bash", `{"command":"ls"}`),
			call("c3", "lost", `{}`), call("c4", "no name", `{}`), call("c5", "list", `[1]`)),
		message("tool", result("c2", "bash", "a.go")),
		message("tool", result("c1", "read", "")),
		message("tool", result("c4", "no name", "odd")),
		message("user", result("c9", "gone", "an orphan")),
		message("model", text("  \n"), call("c1", "read", `{"path":"b.go"}`)),
		message("user", result("c1", "read", "the id again"), text("Go on.")),
		message("model", call("d1", "read", `{"path":"c\ud83d.go"}`)),
		message("user", summary.Part{Kind: summary.Result, CallID: "d1", Tool: "read", Text: "no file", Failed: true},
			text("And then?")),
		message("assistant"),
		message("user", text("Now summarise.")),
	},
}

// TestTheRequestsOfEachProtocol holds the requests, with all that is sent, to the files in testdata.
func TestTheRequestsOfEachProtocol(t *testing.T) {
	t.Parallel()
	warm := 0.2
	for name, c := range map[string]struct {
		provider Provider
		model    Definition
	}{
		"chat": {Provider{Kind: OpenAI, Key: NewKey("sk-1\n")}, Definition{Temperature: &warm, Effort: "low"}},
		"chat-completion": {Provider{Kind: OpenAI, Headers: map[string]Key{"Api-Key": NewKey("k-2")}},
			Definition{Limit: maxCompletionTokens}},
		"responses": {Provider{Kind: OpenAIResponses, Key: NewKey("sk-3")}, Definition{Effort: "low", Temperature: &warm}},
		"messages":  {Provider{Kind: Anthropic, Key: NewKey("sk-4")}, Definition{Temperature: &warm}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = sent(t, r)
				body(400, "{}")(w, r)
			}))
			t.Cleanup(server.Close)
			c.provider.BaseURL, c.provider.AllowPrivate = server.URL+"/gate/v1", true
			c.model.Provider, c.model.Model, c.model.Window = "here", "m-1", 8000
			models, err := Open(Config{map[string]Provider{"here": c.provider}, map[string]Definition{"m": c.model}}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := models.Named("m")
			fails(t, m, 1, ErrRejected)
			if *update {
				if _, err := m.Ask(t.Context(), uuid.Nil, whole); err == nil {
					t.Fatal("no error")
				}
				if err := os.WriteFile("testdata/"+name+".http", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := m.Ask(t.Context(), uuid.Nil, whole); err == nil {
				t.Fatal("no error")
			}
			want, err := os.ReadFile("testdata/" + name + ".http")
			if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// sent returns a request as text, its body indented, without what differs between two runs.
func sent(t *testing.T, r *http.Request) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.URL)
	r.Header.Del("Content-Length")
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
	document, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Indent(&b, document, "", "  ")
	}
	if err != nil {
		t.Error(err)
	}
	return b.String() + "\n"
}

func TestAnAnswerIsBoundByTheDialogueAndTheModel(t *testing.T) {
	t.Parallel()
	m := served(t, Provider{Kind: OpenAI}, body(200, good))
	for asked, want := range map[int]int{0: 2000, 500: 500, 9000: 2000} {
		if got := m.Limit(summary.Dialogue{MaxTokens: asked}); got != want {
			t.Errorf("Limit of %d: %d, want %d", asked, got, want)
		}
	}
}

func TestWhatAModelThinksWithIsNoPartOfItsAnswersLimit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"gpt-5-mini": 500 + 2000, "openai/o3-mini": 500 + 2000, "qwen3:8b": 500 + 2000, "gpt-4.1-mini": 500,
		"claude-haiku-4-5": 500, "proto1": 500, "own": 500 + 300, "low": 500 + 2000,
	} {
		d := Definition{Model: name, Window: 8000}
		switch name {
		case "own":
			d.Reasoning = 300
		case "low":
			d.Effort = "low"
		}
		var limit int
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var q struct {
				Limit int `json:"max_tokens"`
			}
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				t.Error(err)
			}
			limit = q.Limit
			body(200, good)(w, r)
		}))
		t.Cleanup(server.Close)
		m := defined(t, server.URL, Provider{Kind: OpenAI}, d)
		q := ask
		q.MaxTokens = 500
		if _, err := m.Ask(t.Context(), uuid.Nil, q); err != nil || limit != want {
			t.Errorf("%s is sent a limit of %d, want %d; %v", name, limit, want, err)
		}
		if m.Limit(q) != 500 || m.Output(q) != want || m.Bound(q).Output != int64(want) {
			t.Errorf("%s: %d of an answer, %d of a call, reserved: %+v", name, m.Limit(q), m.Output(q), m.Bound(q))
		}
	}
}
