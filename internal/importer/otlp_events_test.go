package importer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

// otlpText returns an attribute, or a member of a kvlist, that is a text.
func otlpText(key, text string) string {
	return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, key, text)
}

// otlpMap returns a value that has members.
func otlpMap(members ...string) string {
	return `{"kvlistValue":{"values":[` + strings.Join(members, ",") + `]}}`
}

func otlpSpan(attributes, events string) string {
	return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"t","spanId":"s","name":"chat","startTimeUnixNano":"1","attributes":[` +
		attributes + `],"events":[` + events + `]}]}]}]}`
}

func otlpEvents(events ...[2]string) string {
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprintf(`{"name":%q,"timeUnixNano":"1","attributes":[%s]}`, e[0], e[1]))
	}
	return strings.Join(all, ",")
}

// otlpRecord returns a log record of a span.
func otlpRecord(at int, name, span, body string) string {
	return fmt.Sprintf(`{"timeUnixNano":"%d","eventName":%q,"traceId":"t","spanId":%q,"attributes":[],"body":%s}`, at, name, span, body)
}

func otlpLogs(records ...string) string {
	return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + strings.Join(records, ",") + `]}]}]}`
}

// TestMessagesThatAreEventsAreRead has the conventions until 1.36, as several programs write them.
func TestMessagesThatAreEventsAreRead(t *testing.T) {
	t.Parallel()
	const call = `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`
	asked, called := `{"role":"user","content":"q"}`, `{"role":"assistant","content":null,"tool_calls":[`+call+`]}`
	user := otlpMap(otlpText("content", "q"))
	choice := otlpMap(`{"key":"index","value":{"intValue":0}}`, otlpText("finish_reason", "tool_calls"),
		`{"key":"message","value":`+otlpMap(otlpText("role", "assistant"), `{"key":"tool_calls","value":{"arrayValue":{"values":[`+
			otlpMap(otlpText("id", "c"), otlpText("type", "function"), `{"key":"function","value":`+otlpMap(otlpText("name", "f"), otlpText("arguments", "{}"))+`}`)+`]}}}`)+`}`)
	for name, test := range map[string]struct {
		file   string
		format session.Format
		want   []string
	}{
		"log records, out of order": {
			otlpLogs(otlpRecord(3, "gen_ai.choice", "s", choice), otlpRecord(1, "gen_ai.system.message", "s", otlpMap(otlpText("content", "be brief"))), otlpRecord(2, "gen_ai.user.message", "s", user)),
			session.OpenAIChat, []string{`{"role":"system","content":"be brief"}`, asked, called},
		},
		"log records before the span and a result": {
			otlpLogs(otlpRecord(1, "gen_ai.user.message", "s", user), otlpRecord(1, "gen_ai.choice", "s", choice)) + "\n" + otlpSpan("", "") + "\n" +
				otlpLogs(otlpRecord(4, "gen_ai.user.message", "s2", user), otlpRecord(4, "gen_ai.assistant.message", "s2", otlpMap(`{"key":"tool_calls","value":{"arrayValue":{"values":[`+otlpMap(otlpText("id", "c"), otlpText("type", "function"), `{"key":"function","value":`+otlpMap(otlpText("name", "f"), otlpText("arguments", "{}"))+`}`)+`]}}}`)),
					otlpRecord(4, "gen_ai.tool.message", "s2", otlpMap(otlpText("id", "c"), otlpText("content", `[{"type":"dir"}]`))), otlpRecord(4, "gen_ai.choice", "s2", otlpMap(`{"key":"message","value":`+otlpMap(otlpText("content", "ok"))+`}`))),
			session.OpenAIChat, []string{asked, called, `{"role":"tool","content":"[{\"type\":\"dir\"}]","tool_call_id":"c"}`, `{"role":"assistant","content":"ok"}`},
		},
		"log records whose names are attributes and whose bodies are strings": {
			otlpLogs(`{"traceId":"t","spanId":"s","body":{"stringValue":"{\"role\":\"user\",\"content\":\"q\"}"},"attributes":[`+otlpText("event.name", "gen_ai.user.message")+`]}`,
				`{"traceId":"t","spanId":"s","body":{"stringValue":"{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"ok\"}}"},"attributes":[`+otlpText("event.name", "gen_ai.choice")+`]}`),
			session.OpenAIChat, []string{asked, `{"role":"assistant","content":"ok"}`},
		},
		"Azure: the message in an attribute of the event, the first of two choices": {
			otlpSpan("", otlpEvents([2]string{"gen_ai.user.message", otlpText("gen_ai.event.content", asked)},
				[2]string{"gen_ai.choice", otlpText("gen_ai.event.content", `{"message":{"content":"one"},"index":0}`)}, [2]string{"gen_ai.choice", otlpText("gen_ai.event.content", `{"message":{"content":"two"},"index":1}`)})),
			session.OpenAIChat, []string{asked, `{"role":"assistant","content":"one"}`},
		},
		"Azure's agents: a text in an object": {
			otlpSpan("", otlpEvents([2]string{"gen_ai.user.message", otlpText("gen_ai.event.content", `{"content":{"text":{"value":"q"}},"role":"user"}`)},
				[2]string{"gen_ai.assistant.message", otlpText("gen_ai.event.content", `{"content":{"text":{"value":"ok"}},"role":"assistant"}`)})),
			session.OpenAIChat, []string{asked, `{"role":"assistant","content":"ok"}`},
		},
		"Strands: blocks of Converse": {
			otlpSpan("", otlpEvents([2]string{"gen_ai.user.message", otlpText("content", `[{"text":"q"}]`)}, [2]string{"gen_ai.assistant.message", otlpText("content", `[{"text":"a tool"},{"toolUse":{"toolUseId":"c","name":"f","input":{}}}]`)},
				[2]string{"gen_ai.tool.message", otlpText("content", `[{"toolResult":{"toolUseId":"c","status":"success","content":[{"text":"r"}]}}]`)}, [2]string{"gen_ai.choice", otlpText("message", `[{"text":"ok"}]`) + "," + otlpText("finish_reason", "end_turn")})),
			session.Anthropic, []string{asked, `{"role":"assistant","content":[{"type":"text","text":"a tool"},{"type":"tool_use","id":"c","name":"f","input":{}}]}`,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"}]}]}`, `{"role":"assistant","content":"ok"}`},
		},
		"Logfire: a message as JSON in an attribute": {
			otlpSpan("", otlpEvents([2]string{"gen_ai.user.message", otlpText("content", "q")}, [2]string{"gen_ai.choice", otlpText("message", `{"content":"ok","role":"assistant"}`) + `,{"key":"index","value":{"intValue":"0"}}`})),
			session.OpenAIChat, []string{asked, `{"role":"assistant","content":"ok"}`},
		},
		"Pydantic AI: a list of events in an attribute": {
			otlpSpan(otlpText("events", `[{"content":"q","role":"user","gen_ai.message.index":0,"event.name":"gen_ai.user.message"},{"index":0,"message":{"role":"assistant","content":[{"kind":"thinking","text":"hm"},{"kind":"text","text":"ok"}]},"event.name":"gen_ai.choice"}]`), ""),
			session.OpenAIChat, []string{asked, `{"role":"assistant","content":"ok","reasoning_content":"hm"}`},
		},
		"Google: contents": {
			otlpLogs(otlpRecord(1, "gen_ai.user.message", "s", otlpMap(`{"key":"content","value":`+otlpMap(otlpText("role", "user"), `{"key":"parts","value":{"arrayValue":{"values":[`+otlpMap(otlpText("text", "q"))+`]}}}`)+`}`)),
				otlpRecord(2, "gen_ai.choice", "s", otlpMap(`{"key":"content","value":`+otlpMap(otlpText("role", "model"), `{"key":"parts","value":{"arrayValue":{"values":[`+otlpMap(otlpText("text", "ok"))+`]}}}`)+`}`))),
			session.Gemini, []string{`{"role":"user","parts":[{"text":"q"}]}`, `{"role":"model","parts":[{"text":"ok"}]}`},
		},
		"ADK: request and response": {
			otlpSpan(otlpText("gcp.vertex.agent.llm_request", `{"model":"m","config":{"system_instruction":"be brief"},"contents":[{"parts":[{"text":"q"}],"role":"user"}]}`)+","+
				otlpText("gcp.vertex.agent.llm_response", `{"content":{"parts":[{"text":"ok"}],"role":"model"}}`), ""),
			session.Gemini, []string{`{"role":"system","parts":[{"text":"be brief"}]}`, `{"role":"user","parts":[{"text":"q"}]}`, `{"role":"model","parts":[{"text":"ok"}]}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Read(t.Context(), "id", []byte(test.file), Auto)
			if err != nil || len(f.Conversations) != 1 || len(f.Report.Rejected) > 0 {
				t.Fatal(err, f)
			}
			var got []string
			for _, m := range f.Conversations[0].Messages {
				got = append(got, string(m.Body))
			}
			if diff := cmp.Diff(test.want, got); diff != "" || f.Conversations[0].Format != test.format {
				t.Errorf("%s (-want +got):\n%s", f.Conversations[0].Format, diff)
			}
		})
	}
}

// TestEventsWithoutMessagesAreCounted names each record that is no message, or says nothing.
func TestEventsWithoutMessagesAreCounted(t *testing.T) {
	t.Parallel()
	f, err := Read(t.Context(), "id", []byte(otlpLogs(
		otlpRecord(1, "gen_ai.user.message", "", otlpMap(otlpText("content", "q"))), otlpRecord(2, "http.request", "s", `{}`),
		otlpRecord(3, "gen_ai.user.message", "s3", `{"kvlistValue":{"values":[]}}`),
		otlpRecord(4, "gen_ai.choice", "s3", otlpMap(`{"key":"message","value":`+otlpMap(`{"key":"tool_calls","value":{"arrayValue":{"values":[`+otlpMap(otlpText("id", "c"))+`]}}}`)+`}`)))), Auto)
	if err != nil || len(f.Conversations) > 0 {
		t.Fatal(err, f)
	}
	want := map[string]int{"log record gen_ai.user.message of no span": 1, "log record http.request": 1, "span of log records": 1}
	if diff := cmp.Diff(want, f.Report.Skipped); diff != "" {
		t.Error(diff)
	}
}
