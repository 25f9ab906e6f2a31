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
		`{"type":"reasoning","id":"rs_1","summary":[]}`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"u"}]}`,
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
	},
}

func batchOf(t *testing.T, f session.Format, strict bool, body string) (*ingest.Batch, error) {
	t.Helper()
	b := &ingest.Batch{Format: f, Tells: true, Strict: strict}
	whole := []byte(`[` + body + `]`)
	if err := b.Open(whole); err != nil {
		t.Fatal(err)
	}
	b.List("/messages", rawjson.Span{Start: 0, End: len(whole)}, 10)
	_, err := b.Messages()
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

// TestWarningsPointAtWhatViewsRepair has what is told of a message, and refused of a strict batch.
func TestWarningsPointAtWhatViewsRepair(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"role":"user","content":"u","metadata":{"a":1}}`:                                                          "/messages/0/metadata member_dropped",
		`{"role":"user","content":[{"type":"text","text":"u","x":1}]}`:                                              "/messages/0/content/0/x member_dropped",
		`{"role":"user","content":[{"type":"text","text":"u"},{"type":"widget","a":1}]}`:                            "/messages/0/content/1 block_as_note",
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}]}`:             "/messages/0/content/0 media_as_note",
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,iVBORw0KGgo="}}]}`: "/messages/0/content/0 media_retyped",
		`{"role":"critic","content":"u"}`:                                                                           "/messages/0 unknown_role",
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`:    "/messages/0 call_typed",
		`{"role":"user","content":"a\ud83d"}`:                                                                       "/messages/0 half_replaced",
		`{"role":"user","content":"u"}`:                                                                             "",
	} {
		b, err := batchOf(t, session.OpenAIChat, false, body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		got := ""
		for _, w := range b.Warnings {
			got += w.Pointer + " " + w.Code
		}
		if got != want {
			t.Errorf("%s: warns %q, not %q", body, got, want)
		}
		if _, err := batchOf(t, session.OpenAIChat, true, body); (err != nil) != (want != "") {
			t.Errorf("%s: strict: %v", body, err)
		}
	}
}
