package wire_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// marked are messages with a marker, M_ and its name, in each member that says something, or that a provider wants back.
var marked = map[session.Format][]string{
	session.Anthropic: {
		`{"role":"user","content":[{"type":"text","text":"M_text","cache_control":{"type":"ephemeral","ttl":"M_cache_control"}},{"type":"document","title":"M_title","source":{"type":"url","url":"https://M_document"}},{"type":"image","source":{"type":"url","url":"https://M_image"}}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"M_thinking","signature":"M_signature"},{"type":"redacted_thinking","data":"M_data"},{"type":"text","text":"x","citations":[{"type":"web_search_result_location","cited_text":"M_cited_text","url":"https://M_url","title":"M_citation","encrypted_index":"M_encrypted_index"}]},` +
			`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"M_query"}},{"type":"tool_use","id":"c","name":"f","input":{"a":"M_input"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"M_result"}],"is_error":true}]}`,
	},
	session.OpenAIChat: {
		`{"role":"user","name":"M_name","content":[{"type":"text","text":"M_text"},{"type":"image_url","image_url":{"url":"https://M_image","detail":"high"}},{"type":"input_audio","input_audio":{"data":"M_sound","format":"wav"}},{"type":"file","file":{"file_id":"M_file_id"}}]}`,
		`{"role":"assistant","content":"x","refusal":"M_refusal","reasoning_content":"M_reasoning","audio":{"id":"M_audio"},"annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":1,"url":"https://M_url","title":"M_annotation"}}],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":\"M_arguments\"}"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":"M_result"}`,
	},
	session.OpenAIResponses: {
		`{"role":"user","content":[{"type":"input_text","text":"M_text"},{"type":"input_image","image_url":"https://M_image"},{"type":"input_file","file_id":"M_file_id"}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"M_summary"}],"encrypted_content":"M_encrypted_content"}`,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[{"type":"file_citation","file_id":"M_cited_id","filename":"M_annotation","index":0}]},{"type":"refusal","refusal":"M_refusal"}]}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"M_query"}}`,
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":\"M_arguments\"}"}`,
		`{"type":"function_call_output","call_id":"c","output":"M_result"}`,
	},
	session.Gemini: {
		`{"role":"user","parts":[{"text":"M_text"},{"fileData":{"mimeType":"image/png","fileUri":"https://M_image"}}]}`,
		`{"role":"model","parts":[{"text":"M_thought","thought":true,"thoughtSignature":"M_thoughtSignature"},{"text":"x"},{"executableCode":{"language":"PYTHON","code":"M_code"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"M_output"}},{"functionCall":{"id":"c","name":"f","args":{"a":"M_args"}},"thoughtSignature":"M_callSignature"}]}`,
		`{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"M_result"}}}]}`,
	},
	session.AISDK: {
		`{"id":"M_id","role":"user","metadata":{"a":"M_metadata"},"parts":[{"type":"text","text":"M_text"},{"type":"file","mediaType":"image/png","url":"https://M_image"},{"type":"data-x","data":"M_dataPart"}]}`,
		`{"id":"m","role":"assistant","parts":[{"type":"reasoning","text":"M_reasoning","providerMetadata":{"anthropic":{"signature":"M_signature"}}},{"type":"reasoning","text":"","providerMetadata":{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"M_reasoningEncryptedContent"}}},{"type":"text","text":"x"},{"type":"source-url","sourceId":"s","url":"https://M_url","title":"M_source"},` +
			`{"type":"source-document","sourceId":"d","mediaType":"a/b","title":"M_document"},{"type":"tool-f","toolCallId":"c","state":"output-available","input":{"a":"M_input"},"output":"M_result"}]}`,
	},
}

// TestWhatOtherFormatsDoNotGetIsDocumented computes the table of section 4 of the second review: of each marker, a view
// in another format has the data or a note that shows it, or docs/formats.md says that it has not.
func TestWhatOtherFormatsDoNotGetIsDocumented(t *testing.T) {
	t.Parallel()
	var lost []string
	for from, bodies := range marked {
		own := wiretest.Render(from, storedOf(from, bodies), wire.Options{})
		for _, marker := range markers(bytes.Join(bytesOfStrings(bodies), nil)) {
			if from != session.OpenAIChat && !bytes.Contains(bytes.Join(own.Bodies, nil), []byte(marker)) {
				t.Errorf("%s loses %s in its own format: %v", from, marker, own.Repairs)
			}
			var targets []string
			for _, target := range session.Formats() {
				made := wiretest.Render(target, storedOf(from, bodies), wire.Options{})
				written := bytes.ReplaceAll(bytes.Join(made.Bodies, nil), []byte("M/sound="), []byte("M_sound")) // base64
				if !bytes.Contains(written, []byte(marker)) && target != from {
					targets = append(targets, string(target))
				}
			}
			if targets != nil {
				lost = append(lost, string(from)+" "+strings.TrimPrefix(marker, "M_")+": "+strings.Join(targets, ", "))
			}
		}
	}
	slices.Sort(lost)
	if diff := cmp.Diff(documentedLosses(t), lost); diff != "" {
		t.Errorf("docs/formats.md (-) and what views lack (+):\n%s", diff)
	}
}

func bytesOfStrings(list []string) (bodies [][]byte) {
	for _, body := range list {
		bodies = append(bodies, []byte(body))
	}
	return bodies
}

func markers(text []byte) (list []string) {
	for _, field := range bytes.FieldsFunc(text, func(c rune) bool { return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_') }) {
		if bytes.HasPrefix(field, []byte("M_")) {
			list = append(list, string(field))
		}
	}
	return list
}

// documentedLosses reads the table of what other formats do not get.
func documentedLosses(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## What other formats do not get\n")
	if !found {
		t.Fatal("docs/formats.md has no section of what other formats do not get")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.Contains(cells[2], "`") {
			continue
		}
		for _, name := range strings.Split(strings.ReplaceAll(cells[2], "`", ""), ",") {
			list = append(list, strings.TrimSpace(cells[1])+" "+strings.TrimSpace(name)+": "+strings.TrimSpace(cells[3]))
		}
	}
	slices.Sort(list)
	return list
}

// TestReasoningComesBackThroughTheAISDK has what OpenAI and Anthropic want back go to the AI SDK and home again.
func TestReasoningComesBackThroughTheAISDK(t *testing.T) {
	t.Parallel()
	for _, from := range []session.Format{session.OpenAIResponses, session.Anthropic} {
		there := wiretest.Render(session.AISDK, storedOf(from, marked[from]), wire.Options{})
		back := wiretest.Render(from, stored(session.AISDK, there.Bodies), wire.Options{})
		got := string(bytes.Join(back.Bodies, []byte("\n")))
		for _, want := range map[session.Format][]string{
			session.OpenAIResponses: {`{"type":"reasoning","summary":[{"type":"summary_text","text":"M_summary"}],"encrypted_content":"M_encrypted_content"}`},
			session.Anthropic:       {`"thinking":"M_thinking","signature":"M_signature"`, `{"type":"redacted_thinking","data":"M_data"}`},
		}[from] {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s is lost on the way through the AI SDK:\n%s", from, want, got)
			}
		}
	}
}
