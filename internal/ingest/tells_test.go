package ingest_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// samples are messages that are surely of one format.
var samples = map[session.Format][]string{
	session.OpenAIChat: {
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":"r"}`, `{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a.b/c.png"}}]}`,
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
	},
	session.Anthropic: {
		`{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
	},
	session.OpenAIResponses: {
		`{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"a","output":"r"}`,
		`{"type":"reasoning","id":"rs_1","summary":[]}`, `{"type":"configuration_update","reasoning":{"effort":"low"}}`, `{"type":"compaction_summary","encrypted_content":"gAAA"}`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"u"}]}`,
	},
	session.Gemini: {
		`{"role":"user","parts":[{"text":"u"}]}`, `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}`,
	},
	session.AISDK: {
		`{"id":"m","role":"user","parts":[{"type":"text","text":"u"}]}`,
		`{"id":"m","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"a","state":"input-available","input":{}}]}`,
		`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"a","toolName":"f","input":{}}]}`,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"a","toolName":"f","output":{"type":"text","value":"r"}}]}`,
		`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image","image":"iVBORw0KGgo="}]}`, `{"role":"user","content":[{"type":"file","data":"iVBORw0KGgo=","mediaType":"image/png"}]}`,
		`{"role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"text","text":"x"}]}`, `{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"a","approved":true}]}`,
		`{"id":"m","role":"assistant","content":"x","toolInvocations":[{"state":"result","toolCallId":"a","toolName":"f","args":{},"result":1}]}`,
	},
}

func batchOf(t *testing.T, f session.Format, strict bool, body string) (*ingest.Batch, error) {
	t.Helper()
	return batchFor(t, f, "", strict, body)
}

func batchFor(t *testing.T, f session.Format, model string, strict bool, body string) (*ingest.Batch, error) {
	t.Helper()
	b := &ingest.Batch{Format: f, Tells: true, Strict: strict}
	whole := []byte(`[` + body + `]`)
	if err := b.Open(whole); err != nil {
		t.Fatal(err)
	}
	b.List("/messages", rawjson.Span{Start: 0, End: len(whole)}, 10)
	_, err := b.Messages()
	if err == nil {
		err = b.Tell(model)
	}
	return b, err
}

// TestAMessageOfAnotherFormatIsRefusedByName appends every sample in every format.
func TestAMessageOfAnotherFormatIsRefusedByName(t *testing.T) {
	t.Parallel()
	for of, bodies := range samples {
		for _, body := range bodies {
			for _, f := range session.Formats() {
				_, err := batchOf(t, f, false, body)
				switch {
				case f == of && err != nil:
					t.Errorf("%s refuses its own message: %v\n%s", f, err, body)
				case f != of && (err == nil || !strings.Contains(err.Error(), "a message of "+string(of))):
					t.Errorf("%s takes a message of %s: %v\n%s", f, of, err, body)
				}
			}
		}
	}
}

// TestWhatSeveralFormatsHaveIsTaken has messages that are of no format for sure.
func TestWhatSeveralFormatsHaveIsTaken(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"role":"user","content":"u"}`, `{"role":"assistant","content":[{"type":"text","text":"x"}]}`, `{"role":"system","content":"s"}`} {
		for _, f := range []session.Format{session.OpenAIChat, session.OpenAIResponses, session.Anthropic, session.AISDK} {
			if _, err := batchOf(t, f, false, body); err != nil {
				t.Errorf("%s refuses %s: %v", f, body, err)
			}
		}
	}
	if _, err := batchOf(t, session.Gemini, false, `{"role":"user","content":"u"}`); err == nil {
		t.Error("gemini takes a content")
	}
}

func TestAMisspeltRoleIsRefused(t *testing.T) {
	t.Parallel()
	for f, body := range map[session.Format]string{
		session.OpenAIChat: `{"role":"asistant","content":"x"}`, session.Anthropic: `{"role":"usr","content":"x"}`,
		session.Gemini: `{"role":"modell","parts":[{"text":"x"}]}`, session.AISDK: `{"id":"m","role":"User","parts":[{"type":"text","text":"x"}]}`,
	} {
		if _, err := batchOf(t, f, false, body); err == nil || !strings.Contains(err.Error(), "do you mean") {
			t.Errorf("%s takes %s: %v", f, body, err)
		}
	}
	if _, err := batchOf(t, session.OpenAIChat, false, `{"role":"critic","content":"x"}`); err != nil {
		t.Errorf("a role that is like none is refused: %v", err)
	}
}

// told are messages that a view in their own format changes, with what an append says of them, and those that
// providers answer and do not take back, of which it says nothing.
var told = map[session.Format]map[string]string{
	session.OpenAIChat: {
		`{"role":"user","content":"u","metadata":{"a":1}}`:                                                                                          "/metadata member_dropped",
		`{"role":"user","content":[{"type":"text","text":"u","x":1}]}`:                                                                              "/content/0/x member_dropped",
		`{"role":"user","content":[{"type":"text","text":"u"},{"type":"widget","a":1}]}`:                                                            "/content/1 block_as_note",
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}]}`:                                             "/content/0 media_as_note",
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,iVBORw0KGgo="}}]}`:                                 "/content/0 media_retyped",
		`{"role":"critic","content":"u"}`:                                                                                                           "/role unknown_role",
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`:                                    "/tool_calls/0 call_typed",
		`{"role":"user","content":"a\ud83d"}`:                                                                                                       "/content half_replaced",
		`{"role":"user","content":"u"}`:                                                                                                             "",
		`{"role":"user","name":"Eve M","content":"u"}`:                                                                                              "/name speaker_as_note",
		`{"role":"user","content":null}`:                                                                                                            " empty_message",
		`{"role":"tool","tool_call_id":"a","content":{"a":1}}`:                                                                                      "/content result_as_text",
		`{"role":"assistant","content":[],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`:                    "/content content_null",
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"a":1}}}]}`:               "/tool_calls/0 arguments_as_text",
		`{"role":"user","content":"u","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`:                        "/tool_calls/0 call_as_note",
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\ud83d\"}"}}]}`: "/tool_calls/0/function/arguments half_replaced",
		`{"role":"assistant","content":null,"function_call":{"name":"a b","arguments":"{}"},"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`: "/function_call legacy_call",
		`{"role":"user","content":"u","annotations":[]}`:                                                        "/annotations member_dropped",
		`{"role":"assistant","content":"x","finish_reason":"stop"}`:                                             "/finish_reason member_dropped",
		`{"role":"assistant","content":null}`:                                                                   "",
		`{"role":"assistant","content":null,"refusal":null,"annotations":[],"audio":null,"function_call":null}`: "",
		`{"role":"assistant","content":"x","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.b","title":"t","start_index":0,"end_index":1}}]}`: "",
	},
	session.OpenAIResponses: {
		`{"type":"function_call","call_id":"a","name":"f"}`:                                                                  " arguments_as_text",
		`{"type":"function_call_output","call_id":"a","output":{"a":1}}`:                                                     " result_as_text",
		`{"type":"function_call","id":"x","call_id":"a","name":"f","arguments":"{}"}`:                                        "/id item_id_dropped",
		`{"type":"reasoning","id":"x","summary":[]}`:                                                                         "/id reasoning_dropped",
		`{"type":"web_search_call","status":"completed"}`:                                                                    " block_as_note",
		`{"type":"widget","a":1}`:                                                                                            " block_as_note",
		`{"role":"user","content":[{"type":"output_text","text":"x"}]}`:                                                      "/content/0 block_as_note",
		`{"type":"message","role":"user","content":"x","metadata":{}}`:                                                       "/metadata member_dropped",
		`{"type":"web_search_call","id":"ws_1","action":{"type":"search","query":"q","x":1}}`:                                "/action/x member_dropped",
		`{"type":"shell_call","call_id":"a","id":"sh_1","action":{"commands":["ls"]},"status":"completed","created_by":"x"}`: "",
	},
	session.Anthropic: {
		`{"role":"user","content":[]}`: " empty_message",
		`{"role":"user","content":[{"type":"text","text":"u"},{"type":"text","text":" "}]}`:                                                                      "/content/1 empty_text",
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"x"}]}`:                                         "/content/0 reasoning_as_text",
		`{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"f","input":[1]}]}`:                                        "/content/1 input_as_object",
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":{"a":1}}]}`:                                                                 "/content/0 result_as_text",
		`{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":"r"}]}`:                                          "/content/1 results_first",
		`{"role":"assistant","content":[{"type":"image","source":{"type":"url","url":"https://a.b/c.png"}}]}`:                                                    "/content/0 media_as_note",
		`{"role":"assistant","content":[{"type":"compaction","content":""}]}`:                                                                                    "/content/0 compaction_null",
		`{"id":"x","role":"user","content":"u"}`:                                                                                                                 "/id member_dropped",
		`{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"x","citations":null}],"stop_reason":"end_turn","usage":{}}`: "",
		`{"role":"assistant","content":[{"type":"text","text":"\n\n"},{"type":"tool_use","id":"a","name":"f","input":{}}]}`:                                      "",
		`{"role":"assistant","content":[]}`: "",
	},
	session.Gemini: {
		`{"role":"assistant","parts":[{"text":"x"}]}`:                                         "/role role_renamed",
		`{"role":"model","parts":[{"text":"x"},{"functionCall":{"name":"f","args":[1]}}]}`:    "/parts/1 part_mended",
		`{"role":"user","parts":[{"inlineData":{"mimeType":"image/gif","data":"R0lGODlh"}}]}`: "/parts/0 media_as_note",
		`{"role":"model","parts":[{"text":"x"}],"finishReason":"STOP"}`:                       "/finishReason member_dropped",
		`{"role":"model"}`: "", `{"role":"model","parts":[]}`: "", `{"role":"model","parts":[{}]}`: "", `{"role":"model","parts":[{"text":"x"},{"text":"","thoughtSignature":"s"}]}`: "",
		`{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]}`: "/parts/1 signature_dropped",
	},
	session.AISDK: {
		`{"id":"m","role":"assistant","parts":[{"type":"step-start"},{"type":"text"}]}`:                                    "/parts/1 part_mended",
		`{"id":"m","role":"assistant","parts":[{"type":"widget"}]}`:                                                        "/parts/0 block_as_note",
		`{"id":"m","role":"tool","parts":[{"type":"text","text":"x"}]}`:                                                    "/role unknown_role",
		`{"id":"m","role":"assistant","parts":[{"type":"text","text":"x"}],"extra":1}`:                                     "/extra member_dropped",
		`{"id":"m","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"output-available","input":{}}]}`: "/parts/0/input part_mended",
		`{"id":"m","role":"assistant","parts":[]}`:                                                                         "",
	},
}

// TestWarningsPointAtWhatViewsRepair has what is told of a message, and refused of a strict batch with the same words.
func TestWarningsPointAtWhatViewsRepair(t *testing.T) {
	t.Parallel()
	for f, messages := range told {
		for body, want := range messages {
			b, err := batchOf(t, f, false, body)
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			got := ""
			for _, w := range b.Warnings {
				got += strings.TrimPrefix(w.Pointer, "/messages/0") + " " + w.Code
			}
			if got != want {
				t.Errorf("%s: %s warns %q, not %q", f, body, got, want)
			}
			_, err = batchOf(t, f, true, body)
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), b.Warnings[0].Pointer+": "+b.Warnings[0].Code) {
				t.Errorf("%s: strict: %v", body, err)
			}
		}
	}
}

// TestWarningsAreThoseOfTheModel has messages that views for one model repair, and views for others do not.
func TestWarningsAreThoseOfTheModel(t *testing.T) {
	t.Parallel()
	const thought = `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"x"}]}`
	const shown = `{"role":"user","content":[{"type":"text","text":"u"},{"type":"file","file":{"file_id":"f"}}]}`
	const array = `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"r"}]}`
	const answered = `{"role":"assistant","content":[{"type":"text","text":"r"}],"reasoning":"hm","annotations":[],"refusal":null}`
	const named = `{"role":"user","name":"eve","content":"u"}`
	for _, c := range []struct {
		format            session.Format
		model, body, want string
	}{
		{session.Anthropic, "claude-opus-5-5", thought, "/content/0 reasoning_as_text"},
		{session.Anthropic, "kimi-k3", thought, ""},
		{session.Anthropic, "deepseek-v4-pro", thought, ""},
		{session.Anthropic, "qwen3-max", thought, ""},
		{session.Anthropic, "z-ai/glm-5", thought, ""},
		{session.Anthropic, "minimax-m2", thought, ""},
		{session.Anthropic, "xiaomi/mimo-v2", thought, ""},
		{session.OpenAIChat, "", shown, ""},
		{session.OpenAIChat, "gpt-5.6", shown, ""},
		{session.OpenAIChat, "groq/openai/gpt-oss-120b", shown, "/content/1 media_as_note"},
		{session.OpenAIChat, "", array, ""},
		{session.OpenAIChat, "deepseek-v4-pro", array, "/content content_as_text"},
		{session.OpenAIChat, "deepseek-v4-pro", answered, ""},
		{session.OpenAIChat, "mistral-large-latest", answered, ""},
		{session.OpenAIChat, "mistral-large-latest", named, " members_dropped"},
		{session.Anthropic, "", `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"thinking","thinking":"","signature":""}]}`, "/content/1 reasoning_dropped"},
		{session.Anthropic, "kimi-k3", `{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":""},{"type":"text","text":"x"}]}`, ""},
		{session.Anthropic, "claude-opus-5-5", `{"role":"system","content":"s","clear_at":"next_user_message","output_config":{"effort":"low"}}`, ""},
		{session.Anthropic, "claude-opus-5-5", `{"role":"user","content":"u","clear_at":"never"}`, "/clear_at member_dropped"},
	} {
		for _, strict := range []bool{false, true} {
			b, err := batchFor(t, c.format, c.model, strict, c.body)
			got := ""
			for _, w := range b.Warnings {
				got += strings.TrimPrefix(w.Pointer, "/messages/0") + " " + w.Code
			}
			if !strict && got != c.want || (err != nil) != (strict && c.want != "") {
				t.Errorf("%s for %q, strict %t: %q, not %q: %v\n%s", c.format, c.model, strict, got, c.want, err, c.body)
			}
		}
	}
}
