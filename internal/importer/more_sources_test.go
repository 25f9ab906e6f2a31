package importer

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestWhatFilesSayBesideTheirMessages has what was lost or taken wrong of files that are read, each with texts that its
// messages have and that they lack.
func TestWhatFilesSayBesideTheirMessages(t *testing.T) {
	t.Parallel()
	otlp := func(attributes string) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"t","name":"chat","startTimeUnixNano":"1","attributes":[` + attributes + `]}]}]}]}`
	}
	const asked = `{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"q\"}]}]"}}`
	claude := func(lines ...string) string { return strings.Join(lines, "\n") }
	const user, said = `{"type":"user","uuid":"u1","message":{"role":"user","content":"go"}}`, `{"type":"assistant","uuid":"a2","parentUuid":"u1","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"ok"}]}}`
	for name, test := range map[string]struct{ file, has, lacks string }{
		"OTLP: an image in the message": {otlp(`{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"q\"},{\"type\":\"blob\",\"modality\":\"image\",\"mime_type\":\"image/png\",\"content\":\"iVBORw0KGgo=\"},{\"type\":\"uri\",\"modality\":\"image\",\"uri\":\"https://a.b/c.png\"}]}]"}}`), `data:image/png;base64,iVBORw0KGgo=|https://a.b/c.png`, ""},
		"OTLP: a number in 64 bits": {otlp(asked + `,{"key":"gen_ai.output.messages","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"assistant"}},{"key":"parts","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[
			{"key":"type","value":{"stringValue":"tool_call"}},{"key":"id","value":{"stringValue":"c"}},{"key":"name","value":{"stringValue":"f"}},{"key":"arguments","value":{"kvlistValue":{"values":[{"key":"n","value":{"intValue":"17"}}]}}}]}}]}}}]}}]}}}`), `{\"n\":17}`, ""},
		"OTLP: one of two choices":                    {otlp(asked + `,{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"one\"}],\"finish_reason\":\"stop\"},{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"two\"}],\"finish_reason\":\"stop\"}]"}}`), "one", "two"},
		"Open WebUI: the system prompt and a thought": {`[{"id":"c","chat":{"params":{"system":"be good"},"history":{"currentId":"b","messages":{"a":{"id":"a","role":"user","content":"q"},"b":{"id":"b","parentId":"a","role":"assistant","content":"<details type=\"reasoning\" done=\"true\">\n<summary>Thought</summary>\n&gt; hm &amp; so\n&gt; on\n</details>\nfin"}}}}}]`, `"be good"|"hm & so\non"`, "> "},
		"LibreChat: the instructions":                 {`{"conversationId":"c","endpoint":"openAI","exportAt":"x","options":{"promptPrefix":"be brief"},"messages":[{"messageId":"1","parentMessageId":"0","isCreatedByUser":true,"text":"q"}]}`, `{"role":"system","content":"be brief"}`, ""},
		"Pydantic AI: a file, a mark, new parts": {`[{"kind":"request","parts":[{"part_kind":"user-prompt","content":["look",{"kind":"binary","data":"JVBERi0=","media_type":"application/pdf","identifier":"a.pdf"},{"kind":"cache-point"}]}]},
			{"kind":"response","parts":[{"part_kind":"native-tool-call","tool_name":"w"},{"part_kind":"compaction","content":"x"},{"part_kind":"text","content":"done"}]}]`, `"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="|"done"`, "cache-point"},
		"Claude Code: an empty prompt that was queued": {claude(user, said, `{"type":"attachment","uuid":"q3","parentUuid":"a2","attachment":{"type":"queued_command","prompt":""}}`), `"ok"`, `""`},
		"Claude Code: a prompt that was queued twice": {claude(`{"type":"queue-operation","operation":"enqueue","content":"more"}`, `{"type":"queue-operation","operation":"enqueue","content":"more"}`, user, said, `{"type":"queue-operation","operation":"dequeue"}`,
			`{"type":"user","uuid":"u4","parentUuid":"a2","message":{"role":"user","content":"more"}}`, `{"type":"queue-operation","operation":"dequeue"}`, `{"type":"assistant","uuid":"a5","parentUuid":"u4","message":{"id":"n","role":"assistant","content":[{"type":"text","text":"B"}]}}`), "\"more\"}\n{\"role\":\"user\",\"content\":\"more\"}", ""},
		"Mistral's thinking is no Anthropic's": {`[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"x"}]}]`, string(session.OpenAIChat), string(session.Anthropic)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Read(t.Context(), "id", []byte(test.file), Auto)
			if err != nil || len(f.Conversations) != 1 || len(f.Report.Rejected) > 0 {
				t.Fatal(err, f)
			}
			text := string(f.Conversations[0].Format) + "\n"
			for _, m := range f.Conversations[0].Messages {
				text += strings.ReplaceAll(string(m.Body), `\u0026`, "&") + "\n"
			}
			for has := range strings.SplitSeq(test.has, "|") {
				if !strings.Contains(text, strings.ReplaceAll(has, "so\non", `so\non`)) || test.lacks != "" && strings.Contains(text, test.lacks) {
					t.Errorf("%q is not there, or %q is:\n%s", has, test.lacks, text)
				}
			}
		})
	}
}
