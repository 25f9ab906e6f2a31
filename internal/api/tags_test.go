package api_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// TestAnswersThatDifferHaveOtherETags changes, one after the other, all that a view may depend on besides its request,
// and reads the session in the same many ways after each: no tag is that of two bodies, and a tag that was given before
// gets 304 only where the body is still the same.
func TestAnswersThatDifferHaveOtherETags(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			r := &tagReader{world: newWorld(t), queries: queriesOf(f), last: map[string]string{}, bodies: map[string]string{}}
			r.work()
			r.must(http.StatusCreated, "PUT", "/v1/sessions/s", fmt.Sprintf(`{"format":%q,"model":"house-%s","window_tokens":100000}`, f, f))
			r.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", strings.Replace(batch(string(f), spokenIn(f)...), `{`, `{"client_ids":["m1"`+strings.Repeat(",null", len(spokenIn(f))-1)+`],`, 1))
			r.readAll("as it was appended")
			for _, c := range r.changes(f) {
				c.do()
				r.readAll(c.name)
			}
			if r.changed < 2*len(r.changes(f)) {
				t.Errorf("only %d answers have changed", r.changed)
			}
		})
	}
}

// spokenIn returns messages with much that models, servers and formats take or do not take.
func spokenIn(f session.Format) (bodies []string) {
	more := map[session.Format][]string{
		session.OpenAIChat: {
			`{"role":"developer","content":"d"}`, `{"role":"user","name":"eve","content":[{"type":"text","text":"go"}]}`,
			`{"role":"assistant","content":"done","reasoning_content":"hm"}`, `{"role":"assistant","content":"more"}`,
		},
		session.OpenAIResponses: {`{"role":"user","content":"go"}`, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"ZQ=="}`, `{"role":"assistant","content":"more"}`},
		session.Anthropic: {
			`{"role":"user","content":"go"}`, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"done"}]}`, `{"role":"assistant","content":"more"}`,
		},
		session.Gemini: {`{"role":"user","parts":[{"text":"go"}]}`, `{"role":"model","parts":[{"text":"hm","thought":true},{"text":"done","thoughtSignature":"c2ln"}]}`},
		session.AISDK: {
			`{"id":"m1","role":"user","parts":[{"type":"text","text":"go"}]}`,
			`{"id":"m2","role":"assistant","parts":[{"type":"reasoning","text":"hm","providerMetadata":{"anthropic":{"signature":"c2ln"}}},{"type":"text","text":"done"}]}`,
		},
	}
	open := map[session.Format]string{ // a call that has no result yet
		session.OpenAIChat:      `{"role":"assistant","content":null,"tool_calls":[{"id":"open","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		session.OpenAIResponses: `{"type":"function_call","call_id":"open","name":"f","arguments":"{}"}`,
		session.Anthropic:       `{"role":"assistant","content":[{"type":"tool_use","id":"open","name":"f","input":{}}]}`,
		session.Gemini:          `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}]}`,
		session.AISDK:           `{"id":"m9","role":"assistant","parts":[{"type":"tool-f","toolCallId":"open","state":"input-available","input":{}}]}`,
	}
	wild := compacttest.Session(rand.New(rand.NewPCG(4, 2)), f, compacttest.Options{Messages: 24, Wild: true})
	return append(append(more[f], strs(wild)...), string(wire.UserMessage(f, []byte(`"go on"`))), open[f])
}

// queriesOf returns ways to read a session of a format: two, with -short one, and for each of them those that differ in
// one thing.
func queriesOf(own session.Format) (queries []string) {
	other := session.Anthropic
	if own == other {
		other = session.OpenAIChat
	}
	bases := []url.Values{{}, {"format": {string(other)}, "model": {"claude-opus-4-6"}, "pending": {"drop"}}}
	if testing.Short() { // the formats take one each in turn
		i := slices.Index(session.Formats(), own) % len(bases)
		bases = bases[i : i+1]
	}
	for _, base := range bases {
		queries = append(queries, "?"+base.Encode())
		for name, values := range map[string][]string{
			"format":     {string(own), "ai-sdk"},
			"model":      {"house-" + string(own), "claude-3-7-sonnet", "claude-3-5-haiku-latest"},
			"dialect":    {"groq", "bedrock"},
			"pending":    {"keep", "synthesize"},
			"max_tokens": {"400", "100000"},
			"fit":        {"window"},
			"view":       {"full"},
		} {
			for _, value := range values {
				one := maps.Clone(base)
				one.Set(name, value)
				if name == "fit" {
					one.Set("wait", "0")
				}
				queries = append(queries, "?"+one.Encode())
			}
		}
	}
	return queries
}

// change is what may change an answer.
type change struct {
	name string
	do   func()
}

// tagReader reads a session in many ways, again and again.
type tagReader struct {
	*world
	queries []string
	last    map[string]string // the tag of each query
	bodies  map[string]string // by tag
	changed int
}

// changes returns what happens to the session, its tenant and the server.
func (r *tagReader) changes(f session.Format) (all []change) {
	add := func(name string, do func()) { all = append(all, change{name, do}) }
	to := func(method, path, body string) func() {
		return func() {
			if got := r.ask(method, "/v1/sessions/s"+path, body); got.Code >= 300 {
				r.Fatalf("%s %s: %d %s", method, path, got.Code, got.Body)
			}
		}
	}
	for _, d := range []provider.Dialect{"groq", "bedrock", ""} {
		add("the registry has a dialect "+string(d), func() { register(r, "house-"+string(f), d) })
	}
	for _, model := range []string{"claude-3-7-sonnet", "claude-opus-4-6", "mistral-large", "gemini-2.5-pro", "house-" + string(f)} {
		add("the session's model is "+model, to("PATCH", "", `{"model":"`+model+`","window_tokens":100000}`))
	}
	add("another window", to("PATCH", "", `{"window_tokens":50000}`))
	add("an overhead that leaves no room", to("PATCH", "", `{"overhead_tokens":49990,"policy":{"auto":false}}`))
	add("a window that is too small", to("PATCH", "", `{"window_tokens":1000,"overhead_tokens":0}`))
	add("an overhead that leaves less room", to("PATCH", "", `{"overhead_tokens":700}`))
	add("usage that changes the calibration", to("POST", "/messages", `{"usage":{"model":"house-`+string(f)+`","input_tokens":90000,"output_tokens":5},"format":"openai-chat","messages":[{"role":"assistant","content":"counted"}]}`))
	add("an append in another format", to("POST", "/messages", batch("anthropic", `{"role":"user","content":"on"}`)))
	add("a pin", to("PUT", fmt.Sprint("/pins/m", len(spokenIn(f))+2), `{"note":"a rule"}`))
	add("a removal", func() {
		ids := r.items("s", "?order=desc&limit=1").ids()
		r.must(http.StatusOK, "DELETE", "/v1/conversations/s/items/"+ids[0], "")
	})
	add("a compaction", to("POST", "/compact?wait=60", ""))
	add("another policy, and its compaction", func() {
		to("PATCH", "", `{"policy":{"profile":"cortex","target":0.1}}`)()
		to("POST", "/compact?wait=60", "")()
	})
	changed := string(wire.UserMessage(f, []byte(`"went"`)))
	if f == session.AISDK {
		changed = ui("m1", "user", text("went"))
	}
	add("a change of a message", to("PATCH", "/messages/m1", `{"message":`+changed+`}`))
	return all
}

var registering sync.Mutex

// register makes the process know a model of our own, whose server takes what a dialect does.
func register(t testing.TB, name string, d provider.Dialect) {
	t.Helper()
	registering.Lock()
	defer registering.Unlock()
	registry, err := models.Current().Extend(fmt.Appendf(nil, `{"models":[{"id":%q,"provider":"us","context_tokens":100000,"dialect":%q,
		"sources":[{"of":"window","name":"our own","date":"2026-01-31"}]}]}`, name, d))
	if err != nil {
		t.Fatal(err)
	}
	models.Use(registry)
}

// readAll reads the session in all ways, after something has changed.
func (r *tagReader) readAll(why string) {
	r.Helper()
	for _, query := range r.queries {
		path := "/v1/sessions/s/context" + query
		got := r.ask("GET", path, "")
		if got.Code == http.StatusUnprocessableEntity || got.Code == http.StatusNotAcceptable || got.Code == http.StatusConflict {
			continue // it cannot be read so
		}
		tag, body := got.Header().Get("Etag"), got.Body.String()
		if known, ok := r.bodies[tag]; got.Code != http.StatusOK || ok && known != body {
			r.Errorf("%s: %s: %d, the tag %s has two bodies:\n%s\n%s", why, path, got.Code, tag, known, body)
			continue
		}
		r.bodies[tag] = body
		before := r.last[query]
		if before != "" && before != tag {
			r.changed++
			if again := r.ask("GET", path, "", "If-None-Match", before); again.Code != http.StatusOK && r.bodies[before] != body {
				r.Errorf("%s: %s: %d for the tag %s of what it was before", why, path, again.Code, before)
			}
		}
		r.last[query] = tag
	}
}
