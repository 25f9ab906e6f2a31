package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestAPatchedMessageIsWhatAnAppendedOneIs replaces a message by what views repair, and by what no append takes. The
// same is appended to another session: the answers tell the same, and so do the views.
func TestAPatchedMessageIsWhatAnAppendedOneIs(t *testing.T) {
	t.Parallel()
	const said, use = `{"role":"assistant","content":"so"}`, `{"type":"tool_use","id":"a","name":"f","input":{"x":1}}`
	const chatCall, result = `{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"role":"tool","tool_call_id":"a","content":"r"}`
	const thought = `{"type":"thinking","thinking":"hm","signature":"s"}`
	calls := func(list ...string) string {
		return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(list, ",") + `]}`
	}
	blocks := func(role string, list ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(list, ",") + `]}`
	}
	for name, test := range map[string]struct {
		format session.Format
		model  string
		log    []string // the second of which is replaced
		with   string
	}{
		"half of a pair": {session.OpenAIChat, "gpt-5.6", []string{user("u"), said, user("u")}, `{"role":"assistant","content":"a\ud83d"}`},
		"half of a pair inside arguments": {session.OpenAIChat, "gpt-5.6", []string{user("u"), calls(chatCall), result, user("u")},
			calls(`{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":\"\\ud83d\"}"}}`)},
		"half of a pair in a result": {session.Anthropic, "claude-opus-5-5", []string{blocks("assistant", use), blocks("user", `{"type":"tool_result","tool_use_id":"a","content":"r"}`), user("u")},
			blocks("user", `{"type":"tool_result","tool_use_id":"a","content":"r\udc00"}`)},
		"a thought that was cut off":   {session.Anthropic, "claude-opus-4-6", []string{user("u"), said, user("u")}, blocks("assistant", thought)},
		"a thought without signature":  {session.Anthropic, "claude-opus-4-6", []string{user("u"), said, user("u")}, blocks("assistant", `{"type":"thinking","thinking":"hm"}`, `{"type":"text","text":"so"}`)},
		"what is left of a stream":     {session.OpenAIChat, "gpt-5.6", []string{user("u"), calls(chatCall), result, user("u")}, calls(chatCall, `{"id":"","type":"function","function":{"name":"","arguments":""}}`, `null`)},
		"parallel calls of one id":     {session.OpenAIChat, "gpt-5.6", []string{user("u"), calls(chatCall), result, result, user("u")}, calls(chatCall, strings.Replace(chatCall, "1", "2", 1))},
		"a call without type":          {session.OpenAIChat, "gpt-5.6", []string{user("u"), calls(chatCall), result, user("u")}, calls(strings.Replace(chatCall, `"type":"function",`, "", 1))},
		"arguments that were cut off":  {session.OpenAIChat, "vllm/qwen3-32b", []string{user("u"), calls(chatCall), result, user("u")}, calls(strings.Replace(chatCall, `1}`, `1`, 1))},
		"an input that is no object":   {session.Anthropic, "claude-opus-4-6", []string{user("u"), blocks("assistant", use), blocks("user", `{"type":"tool_result","tool_use_id":"a","content":"r"}`)}, blocks("assistant", strings.Replace(use, `{"x":1}`, `[1]`, 1))},
		"a mistyped image":             {session.Anthropic, "claude-opus-4-6", []string{said, user("u"), said}, blocks("user", `{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"iVBORw0KGgo="}}`, `{"type":"text","text":"u"}`)},
		"a call that nobody answers":   {session.OpenAIChat, "gpt-5.6", []string{user("u"), said, user("u")}, calls(chatCall)},
		"a message of another format":  {session.Anthropic, "claude-opus-4-6", []string{user("u"), said, user("u")}, calls(chatCall)},
		"a misspelt role":              {session.Anthropic, "claude-opus-4-6", []string{user("u"), said, user("u")}, `{"role":"asistant","content":"so"}`},
		"an id that is refused":        {session.OpenAIResponses, "gpt-5.6", []string{user("u"), said, user("u")}, `{"type":"message","id":"x","role":"assistant","content":"so"}`},
		"a call in the place of words": {session.Gemini, "gemini-3.5-flash", []string{`{"role":"user","parts":[{"text":"u"}]}`, `{"role":"model","parts":[{"text":"so"}]}`, `{"role":"user","parts":[{"text":"u"}]}`}, `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`},
		"a part that is not finished":  {session.AISDK, "claude-opus-5-5", []string{ui("m0", "user", text("u")), ui("m1", "assistant", text("so")), ui("m2", "user", text("u"))}, ui("m1", "assistant", `{"type":"tool-f","toolCallId":"a","state":"input-streaming"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, id := range []string{"patched", "appended"} {
				w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, fmt.Sprintf(`{"model":%q,"format":%q}`, test.model, test.format))
			}
			ids := make([]string, len(test.log))
			for i := range ids {
				ids[i] = fmt.Sprintf(`"m%d"`, i)
			}
			names := `,"client_ids":[` + strings.Join(ids, ",") + `]`
			w.must(http.StatusCreated, "POST", "/v1/sessions/patched/messages", strings.TrimSuffix(batch(string(test.format), test.log...), "}")+names+"}")
			log := append([]string{test.log[0], test.with}, test.log[2:]...)
			appended := w.ask("POST", "/v1/sessions/appended/messages", strings.TrimSuffix(batch(string(test.format), log...), "}")+names+"}")
			patched := w.ask("PATCH", "/v1/sessions/patched/messages/m1", `{"message":`+test.with+`}`)
			if appended.Code != http.StatusCreated {
				got, want := decoded[problem](patched), decoded[problem](appended)
				if patched.Code != appended.Code || got.Code != want.Code {
					t.Errorf("%d: %+v, want %d: %+v", patched.Code, got, appended.Code, want)
				}
				return
			}
			type told struct{ Warnings []session.Warning }
			got, want := decoded[told](patched), decoded[told](appended)
			for i := range want.Warnings {
				want.Warnings[i].Pointer = strings.Replace(want.Warnings[i].Pointer, "/messages/1", "/message", 1)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the patch tells else than the append (-):\n%s", diff)
			}
			read := func(id string) renderedView {
				v := decoded[renderedView](w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/context", ""))
				for i := range v.Repairs {
					v.Repairs[i].Seq = 0
				}
				return v
			}
			one, other := read("patched"), read("appended")
			if diff := cmp.Diff(strs(other.bodies()), strs(one.bodies())); diff != "" {
				t.Errorf("the patched view is not the appended one (-):\n%s", diff)
			}
			if diff := cmp.Diff(other.Repairs, one.Repairs); diff != "" {
				t.Errorf("other repairs (-):\n%s", diff)
			}
			for _, broken := range wiretest.Validate(test.format, one.bodies(), wire.Options{Model: test.model}) {
				t.Errorf("%+v", broken)
			}
		})
	}
}
