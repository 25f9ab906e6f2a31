package fake_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/llm/fake"
)

// TestWhatTheProvidersRefuse changes a right request in one place.
func TestWhatTheProvidersRefuse(t *testing.T) {
	t.Parallel()
	s := serve(t, fake.Options{Models: map[string]fake.Model{"m": {}, "tiny": {Window: 30}}})
	const (
		chat      = `{"model":"m","messages":[%]}`
		responses = `{"model":"m","input":[%]}`
		messages  = `{"model":"m","max_tokens":9,"tools":[{"name":"f","input_schema":{}}],"messages":[%]}`
		user      = `{"role":"user","content":"x"}`
		call      = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		use       = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		result    = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`
	)
	for _, c := range []struct {
		name      string
		p         fake.Protocol
		body, say string // the form of the body, or all of it; "" for accepted
		messages  string
	}{
		{"right", fake.Chat, chat, "", user + "," + call + `,{"role":"tool","tool_call_id":"a","content":"r"}`},
		{"unknown member", fake.Chat, `{"model":"m","messages":[` + user + `],"max_output_tokens":9}`, "Unknown parameter", ""},
		{"no model", fake.Chat, `{"messages":[` + user + `]}`, "Missing required parameter: 'model'", ""},
		{"no messages", fake.Chat, chat, "at least one", ""},
		{"role", fake.Chat, chat, "Invalid value: 'bot'", `{"role":"bot","content":"x"}`},
		{"member of a message", fake.Chat, chat, "messages.0.ref", `{"role":"user","content":"x","ref":"r"}`},
		{"orphaned result", fake.Chat, chat, "preceding message", user + `,{"role":"tool","tool_call_id":"a","content":"r"}`},
		{"orphaned call", fake.Chat, chat, "did not have response messages: a", user + "," + call + "," + user},
		{"call at the end", fake.Chat, chat, "did not have response messages: a", user + "," + call},
		{"nothing said", fake.Chat, chat, "got null", user + `,{"role":"assistant","content":null}`},
		{"block", fake.Chat, chat, "Invalid value: 'input_text'", `{"role":"user","content":[{"type":"input_text","text":"x"}]}`},
		{"both limits", fake.Chat, `{"model":"m","max_tokens":1,"max_completion_tokens":1,"messages":[` + user + `]}`, "at the same time", ""},
		{"unknown model", fake.Chat, `{"model":"n","messages":[` + user + `]}`, "does not exist", ""},
		{"window", fake.Chat, `{"model":"tiny","messages":[{"role":"user","content":"` + strings.Repeat("x", 150) + `"}]}`, "maximum context length", ""},
		{"no JSON", fake.Chat, `{"model":`, "could not parse", ""},

		{"right", fake.Responses, responses, "", user + `,{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"r"}`},
		{"a text", fake.Responses, `{"model":"m","input":"x","instructions":"y","max_output_tokens":16}`, "", ""},
		{"unknown member", fake.Responses, `{"model":"m","input":"x","max_tokens":9}`, "Unknown parameter", ""},
		{"few tokens", fake.Responses, `{"model":"m","input":"x","max_output_tokens":9}`, "below minimum", ""},
		{"role", fake.Responses, responses, "Invalid value: 'tool'", `{"role":"tool","content":"x"}`},
		{"orphaned output", fake.Responses, responses, "No tool call found", user + `,{"type":"function_call_output","call_id":"a","output":"r"}`},
		{"orphaned call", fake.Responses, responses, "No tool output found", user + `,{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`},
		{"block", fake.Responses, responses, "Invalid value: 'text'", `{"role":"user","content":[{"type":"text","text":"x"}]}`},
		{"the assistant's block", fake.Responses, responses, "Invalid value: 'input_text'", user + `,{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`},

		{"right", fake.Messages, messages, "", user + "," + use + "," + result},
		{"no max_tokens", fake.Messages, `{"model":"m","messages":[` + user + `]}`, "max_tokens: Field required", ""},
		{"unknown member", fake.Messages, `{"model":"m","max_tokens":9,"store":true,"messages":[` + user + `]}`, "store: Extra inputs", ""},
		{"role", fake.Messages, messages, "messages.0.role", `{"role":"system","content":"x"}`},
		{"empty text", fake.Messages, messages, "non-empty", `{"role":"user","content":[{"type":"text","text":" "}]}`},
		{"empty message", fake.Messages, messages, "non-empty", `{"role":"user","content":""}`},
		{"assistant first", fake.Messages, messages, "first message", `{"role":"assistant","content":"x"}`},
		{"orphaned result", fake.Messages, messages, "unexpected `tool_use_id`", user + "," + result},
		{"orphaned call", fake.Messages, messages, "without `tool_result` blocks", user + "," + use + "," + user},
		{"call at the end", fake.Messages, messages, "without `tool_result` blocks", user + "," + use},
		{"text before a result", fake.Messages, messages, "without `tool_result` blocks", user + "," + use + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}`},
		{"blocks of tools without tools", fake.Messages, `{"model":"m","max_tokens":9,"messages":[` + user + "," + use + "," + result + `]}`, "must define tools", ""},
		{"a result of the assistant's", fake.Messages, messages, "messages.1.content.0.type", user + `,{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"a"}]}`},
		{"white space at the end", fake.Messages, messages, "trailing whitespace", user + `,{"role":"assistant","content":"x "}`},
		{"window", fake.Messages, `{"model":"tiny","max_tokens":29,"messages":[` + user + `]}`, "prompt is too long", ""},
	} {
		status, body, err := raw(t.Context(), t, s, c.p, strings.Replace(c.body, "%", c.messages, 1), nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case c.say == "" && status != http.StatusOK:
			t.Errorf("%s %s: %d %s", c.p, c.name, status, body)
		case c.say != "" && (status != http.StatusBadRequest && status != http.StatusNotFound || !strings.Contains(message(t, c.p, body), c.say)):
			t.Errorf("%s %s: %d %s, want %q", c.p, c.name, status, body, c.say)
		}
	}
}

// message returns the message of an error in the form of its provider.
func message(t *testing.T, p fake.Protocol, body []byte) string {
	t.Helper()
	var e struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Error.Type == "" || (e.Type == "error") != (p == fake.Messages) {
		t.Errorf("%s: no error of this provider (%v): %s", p, err, body)
	}
	return e.Error.Message
}

// right returns a request with the headers of the protocol's clients.
func right(ctx context.Context, t *testing.T, s *fake.Server, p fake.Protocol, body string) *http.Request {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+string(p), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer k")
	q.Header.Set("X-Api-Key", "k")
	q.Header.Set("Anthropic-Version", "2023-06-01")
	return q
}

// raw sends a text. Headers replace those of a right request; "" removes one.
func raw(
	ctx context.Context, t *testing.T, s *fake.Server, p fake.Protocol, body string, headers map[string]string,
) (int, []byte, error) {
	t.Helper()
	q := right(ctx, t, s, p, body)
	for name, value := range headers {
		q.Header.Del(name)
		if value != "" {
			q.Header.Set(name, value)
		}
	}
	status, _, answer, err := send(q)
	return status, answer, err
}

func TestHeadersAreRequired(t *testing.T) {
	t.Parallel()
	s := serve(t, fake.Options{Key: "k"})
	for _, c := range []struct {
		p           fake.Protocol
		name, value string
		want        int
	}{
		{fake.Chat, "", "", 200},
		{fake.Messages, "", "", 200},
		{fake.Chat, "Authorization", "", 401},
		{fake.Responses, "Authorization", "k", 401},
		{fake.Chat, "Authorization", "Bearer other", 401},
		{fake.Messages, "X-Api-Key", "", 401},
		{fake.Messages, "X-Api-Key", "other", 401},
		{fake.Messages, "Anthropic-Version", "", 400},
		{fake.Messages, "Content-Type", "text/plain", 400},
		{fake.Chat, "Content-Type", "", 400},
		{"/v1/other", "", "", 404},
	} {
		body := `{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"x"}]}`
		headers := map[string]string{}
		if c.name != "" {
			headers[c.name] = c.value
		}
		if c.p == fake.Responses {
			body = `{"model":"m","input":"x"}`
		}
		status, answer, err := raw(t.Context(), t, s, c.p, body, headers)
		if status != c.want || err != nil {
			t.Errorf("%s with %s %q: %d %s %v, want %d", c.p, c.name, c.value, status, answer, err, c.want)
		}
	}
}
