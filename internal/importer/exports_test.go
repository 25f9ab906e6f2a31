package importer

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestExportsAreReadInEveryShape(t *testing.T) {
	t.Parallel()
	const (
		hi        = `1 {"role":"user","content":"hi"}`
		hiBlock   = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
		hiPart    = `1 {"role":"user","parts":[{"text":"hi"}]}`
		node      = `{"id":"a","parent":null,"children":[],"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]}}}`
		event     = `{"author":"user","invocationId":"e","content":{"role":"user","parts":[{"text":"hi"}]}}`
		converses = `{"role":"user","content":[{"text":"hi"}]}`
		answer    = `{"role":"assistant","content":[{"text":"ho"}]}`
		atifRun   = `{"schema_version":"ATIF-v1.2","agent":{"name":"a"},"steps":[{"step_id":1,"source":"user","message":"hi"}]}`
		generated = `{"id":"o","traceId":"t","type":"GENERATION","input":"hi","output":"ho"}`
		run       = `{"id":"r","run_type":"llm","trace_id":"t","inputs":{"messages":[{"role":"user","content":"hi"}]},"outputs":{"role":"assistant","content":"ho"}}`
	)
	ho := `1 {"role":"assistant","content":"ho"}`
	tests := []readable{
		{"a ChatGPT conversation alone", `{"title":"t","mapping":{"a":` + node + `}}`, ChatGPT, []string{hi}},
		{
			"ChatGPT conversations on lines",
			`{"title":"t","mapping":{"a":` + node + `}}` + "\n" + `{"title":"u","mapping":{}}`,
			ChatGPT,
			[]string{hi},
		},
		{
			"an AI Studio prompt in an array",
			`[{"chunkedPrompt":{"chunks":[{"role":"user","text":"hi"}]}}]`,
			AIStudio,
			[]string{hiPart},
		},
		{"ADK events in an array", `[` + event + `]`, ADK, []string{hiPart}},
		{
			"ADK events on lines",
			event + "\n" + strings.Replace(event, "hi", "hi", 1),
			ADK,
			[]string{hiPart, "2" + hiPart[1:]},
		},
		{
			"the oldest eval files",
			`[{"query":"hi","expected_tool_use":[{"tool_name":"n","tool_input":{"a":1}}],"reference":"ho"}]`,
			ADK,
			[]string{
				hiPart, `1 {"role":"model","parts":[{"functionCall":{"id":"call-1-1","name":"n","args":{"a":1}}}]}`,
				`1 {"role":"model","parts":[{"text":"ho"}]}`,
			},
		},
		{
			"ShareGPT records on lines",
			`{"conversations":[{"from":"human","value":"hi"}]}` + "\n" + `{"conversations":[]}`,
			ShareGPT,
			[]string{hi},
		},
		{"ShareGPT turns in an array", `[{"from":"human","value":"hi"}]`, ShareGPT, []string{hi}},
		{"ATIF trajectories in an array", `[` + atifRun + `]`, ATIF, []string{hi}},
		{"an ATIF trajectory on a line", atifRun + "\n\n", ATIF, []string{hi}},
		{"Converse messages in an array", `[` + converses + `,` + answer + `]`, Bedrock, []string{"1 " + hiBlock, `2 {"role":"assistant","content":[{"type":"text","text":"ho"}]}`}},
		{"Converse messages on lines", converses + "\n" + converses, Bedrock, []string{"1 " + hiBlock, "2 " + hiBlock}},
		{"a Converse request", `{"messages":[` + converses + `],"inferenceConfig":{}}`, Bedrock, []string{"1 " + hiBlock}},
		{
			"a Converse response",
			`{"output":{"message":` + answer + `},"stopReason":"end_turn"}`,
			Bedrock,
			[]string{`1 {"role":"assistant","content":[{"type":"text","text":"ho"}]}`},
		},
		{
			"a recorded request of InvokeModel",
			`{"modelId":"anthropic.claude","body":"{\"anthropic_version\":\"b\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"}`,
			Bedrock,
			[]string{hi},
		},
		{
			"an invocation of a model that takes OpenAI Chat's messages",
			`{"input":{"inputBodyJson":{"messages":[{"role":"user","content":"hi"}]}},"output":{"outputBodyJson":{"choices":[{"message":{"role":"assistant","content":"ho"}}]}}}`,
			Bedrock,
			[]string{hi, ho},
		},
		{"Langfuse observations in an array", `[` + generated + `]`, Langfuse, []string{hi, ho}},
		{"a page of Langfuse's API", `{"data":[` + generated + `],"meta":{}}`, Langfuse, []string{hi, ho}},
		{
			"a Langfuse trace with its observations in it",
			`{"id":"t","timestamp":"2025-01-01T00:00:00Z","projectId":"p","observations":[` + generated + `]}`,
			Langfuse,
			[]string{hi, ho},
		},
		{
			"a Langfuse trace whose observations do not name it",
			`{"id":"t","timestamp":"2025-01-01T00:00:00Z","projectId":"p","input":"hi","observations":[` + strings.Replace(generated, `"traceId":"t",`, "", 1) + `]}`,
			Langfuse,
			[]string{hi, ho},
		},
		{
			"Langfuse traces without observations",
			`[{"id":"t","timestamp":"2025-01-01T00:00:00Z","bookmarked":false,"input":{"messages":[{"role":"user","content":"hi"}]},"output":"ho"}]`,
			Langfuse,
			[]string{hi, ho},
		},
		{
			"a result without an id, in a message with the tool's name as its role",
			`[{"id":"o","traceId":"t","type":"GENERATION","input":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]},{"role":"n","content":"ho"}]}]`,
			Langfuse,
			[]string{
				`1 {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
				`1 {"role":"tool","tool_call_id":"c","content":"ho"}`,
			},
		},
		{"a LangSmith run alone", run, LangSmith, []string{hi, ho}},
		{"LangSmith runs in a page", `{"runs":[` + run + `],"cursors":{}}`, LangSmith, []string{hi, ho}},
		{
			"what LangSmith's SDKs send",
			`{"post":[{"id":"r","run_type":"llm","trace_id":"t","inputs":{"prompt":"hi"},"outputs":{}}],"patch":[{"id":"x","outputs":{"output":"no"}},{"id":"r","outputs":{"output":"ho"}}]}`,
			LangSmith,
			[]string{hi, ho},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.read(t)
		})
	}
}

func TestMessagesOfExportsHaveTheirTimes(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		`{"title":"t","mapping":{"a":{"message":{"author":{"role":"user"},"create_time":1700000001.25,"content":{"content_type":"text","parts":["a"]}}}}}`: "2023-11-14T22:13:21.25Z",
		`[{"author":"user","invocationId":"e","timestamp":1747377543788,"content":{"parts":[{"text":"a"}]}}]`:                                              "2025-05-16T06:39:03.788Z",
		`{"chunkedPrompt":{"chunks":[{"role":"user","text":"a","createTime":"2025-11-02T10:00:00.5Z"}]}}`:                                                  "2025-11-02T10:00:00.5Z",
		`[{"id":"o","trace_id":"t","type":"GENERATION","start_time":"2025-08-01 10:00:00.5","input":"a"}]`:                                                 "2025-08-01T10:00:00.5Z",
		`{"run_type":"llm","name":"m","start_time":"2025-08-01T10:00:00.5","inputs":{"input":"a"}}`:                                                        "2025-08-01T10:00:00.5Z",
		`{"schemaType":"ModelInvocationLog","timestamp":"2025-08-01T10:00:00Z","input":{"inputBodyJson":{"prompt":"a"}}}`:                                  "2025-08-01T10:00:00Z",
		`{"schema_version":"ATIF-v1.2","steps":[{"source":"user","message":"a","timestamp":"2025-08-01T10:00:00Z"}]}`:                                      "2025-08-01T10:00:00Z",
	} {
		f, err := Read(context.Background(), "s", []byte(file), Auto)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Conversations[0].Messages[0].At.Format(time.RFC3339Nano); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

// TestLongExportsAreReadInLinearTime holds for what a file may have many of: nodes beside the branch, open calls.
func TestLongExportsAreReadInLinearTime(t *testing.T) {
	t.Parallel()
	const n = 20_000
	var nodes, messages strings.Builder
	for i := range n {
		nodes.WriteString(`,"` + strconv.Itoa(i) + `":{"parent":"` + strconv.Itoa(i-1) + `","message":{"author":{"role":"user"}}}`)
		messages.WriteString(`,{"role":"assistant","content":null,"tool_calls":[{"id":"` + strconv.Itoa(i) + `","function":{"name":"n","arguments":{}}}]}`)
	}
	for i := range n {
		messages.WriteString(`,{"role":"tool","tool_call_id":"` + strconv.Itoa(n-i-1) + `","content":{"a":1}}`)
	}
	start := time.Now()
	for _, file := range []string{
		`{"title":"t","current_node":"a","mapping":{"a":{"parent":null,"message":null}` + nodes.String() + `}}`,
		`[{"id":"o","traceId":"t","type":"GENERATION","input":[` + messages.String()[1:] + `]}]`,
	} {
		f := &File{Report: Report{Skipped: map[string]int{}}, names: map[string]int{}}
		from, err := detect([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		f.kind = firstSource(func(s source) bool { return s.name == from })
		if err := f.kind.read(f, "s", []byte(file)); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}
