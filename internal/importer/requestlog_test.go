package importer

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestLogs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{
			"requests that grow are one conversation, also without responses",
			[]string{
				`{"messages":[{"role":"user","content":"a"}]}`,
				`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`,
			},
			[]string{
				`1 {"role":"user","content":"a"}`,
				`2 {"role":"assistant","content":"b"}`,
				`2 {"role":"user","content":"c"}`,
			},
		},
		{
			"a response that no request repeats stays",
			[]string{
				`{"messages":[{"role":"user","content":"a"}],"response":{"choices":[{"message":{"role":"assistant","content":"b"}}]}}`,
				`{"messages":[{"role":"user","content":"a"},{"role":"user","content":"c"}]}`,
			},
			[]string{
				`1 {"role":"user","content":"a"}`,
				`1 {"role":"assistant","content":"b"}`,
				`2 {"role":"user","content":"c"}`,
			},
		},
		{
			"a response that the next request has otherwise stays beside it",
			[]string{
				`{"messages":[{"role":"user","content":"a"}],"response":{"choices":[{"message":{"role":"assistant","content":"b"}}]}}`,
				`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"edited"},{"role":"user","content":"c"}]}`,
			},
			[]string{
				`1 {"role":"user","content":"a"}`, `1 {"role":"assistant","content":"b"}`,
				`2 {"role":"assistant","content":"edited"}`, `2 {"role":"user","content":"c"}`,
			},
		},
		{
			"requests of which neither begins with the other are conversations of their own",
			[]string{
				`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}]}`,
				`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"b"}]}`,
				`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"c"}]}`,
			},
			[]string{
				`s 1 {"role":"system","content":"s"}`, `s 1 {"role":"user","content":"a"}`, `s 3 {"role":"user","content":"c"}`,
				`s-2 2 {"role":"system","content":"s"}`, `s-2 2 {"role":"user","content":"b"}`,
			},
		},
		{
			"a line that fits several formats has that of the first line that fits only one",
			[]string{
				`{"messages":[{"role":"user","content":"a"}]}`,
				`{"type":"message","role":"assistant","content":[{"type":"text","text":"b"}],"usage":{}}`,
				`{"system":"s","messages":[{"role":"user","content":"c"}]}`,
			},
			[]string{
				`s 1 {"role":"user","content":"a"}`, `s 2 {"role":"assistant","content":[{"type":"text","text":"b"}]}`,
				`s-2 3 {"role":"system","content":"s"}`, `s-2 3 {"role":"user","content":"c"}`,
			},
		},
		{
			"what is neither a request nor a response is skipped; a mark of the cache changes nothing",
			[]string{
				`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}]}`,
				`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c","id":7}]}]}`,
				`{"type":"end","pid":7}`,
			},
			[]string{
				`1 {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}`,
				`2 {"role":"user","content":[{"type":"text","text":"c","id":7}]}`,
			},
		},
		{
			"a format that fits only one side is not taken over by requests of the other",
			[]string{
				`{"messages":[{"role":"user","content":"a"}]}`,
				`{"contents":[{"parts":[{"text":"b"}]}],"response":{"candidates":[{"content":{"role":"model","parts":[]}}]}}`,
			},
			[]string{
				`s 1 {"role":"user","content":"a"}`,
				`s-2 2 {"parts":[{"text":"b"}]}`,
				`s-2 2 {"role":"model","parts":[]}`,
			},
		},
		{
			"a request that names the response before it adds all that it has",
			[]string{
				`{"request":{"instructions":"i","input":"a"},"response":{"id":"r1","object":"response","output":[{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}]}}`,
				`{"request":{"instructions":"i","previous_response_id":"r1","input":[{"type":"function_call_output","call_id":"c","output":"o"}]},"response":{"id":"r2","object":"response","output":[]}}`,
			},
			[]string{
				`1 {"type":"message","role":"system","content":"i"}`, `1 {"role":"user","content":"a"}`,
				`1 {"type":"function_call","call_id":"c","name":"n","arguments":"{}"}`, `2 {"type":"function_call_output","call_id":"c","output":"o"}`,
			},
		},
		{
			"responses alone are conversations of their own",
			[]string{
				`{"custom_id":"1","response":{"status_code":200,"body":{"choices":[{"message":{"role":"assistant","content":"a"}}]}}}`,
				`{"custom_id":"2","response":{"status_code":200,"body":{"choices":[{"message":{"role":"assistant","content":"a"}}]}}}`,
			},
			[]string{`s 1 {"role":"assistant","content":"a"}`, `s-2 2 {"role":"assistant","content":"a"}`},
		},
		{
			"a batch has its requests in bodies",
			[]string{
				`{"custom_id":"1","method":"POST","body":{"contents":[{"role":"user","parts":[{"text":"a"}]}]}}`,
				`{"custom_id":"2","method":"POST","body":{"contents":[{"role":"user","parts":[{"text":"b"}]}]}}`,
			},
			[]string{`s 1 {"role":"user","parts":[{"text":"a"}]}`, `s-2 2 {"role":"user","parts":[{"text":"b"}]}`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for file, data := range map[string]string{"lines": strings.Join(tt.lines, "\n"), "an array": "[" + strings.Join(tt.lines, ", ") + "]"} {
				f, err := Read(context.Background(), "s", []byte(data), Auto)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, show(f)); f.Source != RequestLog || diff != "" {
					t.Errorf("%s: source %s, messages (-want +got):\n%s", file, f.Source, diff)
				}
				checkLaws(t, f)
			}
		})
	}
}

func TestALogOfOneValueIsRead(t *testing.T) {
	t.Parallel()
	log := `{"messages":[{"role":"user","content":"a"}]}`
	for name, data := range map[string]string{"a line": log + "\n", "several lines": strings.ReplaceAll(log, ",", ",\n")} {
		f, err := Read(context.Background(), "s", []byte(data), RequestLog)
		if err != nil {
			t.Fatal(err)
		}
		if f.Report.Imported != 1 || len(f.Conversations) != 1 {
			t.Errorf("%s: %+v", name, f.Report)
		}
	}
	chunk := `{"type":"text-delta",` + "\n" + `"id":"t","delta":"a"}`
	f, err := Read(context.Background(), "s", []byte(chunk), Auto)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`1 {"id":"message-1","role":"assistant","parts":[{"type":"text","text":"a","state":"streaming"}]}`}
	if diff := cmp.Diff(want, show(f)); diff != "" {
		t.Errorf("a chunk on two lines (-want +got):\n%s", diff)
	}
}

func TestRequestLogsKeepWhatARequestLeavesOutOrNoteIt(t *testing.T) {
	t.Parallel()
	const (
		asked   = `{"role":"user","parts":[{"text":"a"}]}`
		signed  = `{"role":"model","parts":[{"functionCall":{"name":"n","args":{}},"thoughtSignature":"c2ln"}]}`
		bare    = `{"role":"model","parts":[{"functionCall":{"name":"n","args":{}}}]}`
		result  = `{"role":"user","parts":[{"functionResponse":{"name":"n","response":{}}}]}`
		thought = `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"text","text":"\u00e9"},{"type":"tool_use","id":"c","name":"n","input":{}}]}`
		called  = `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]}`
		same    = `{"role":"assistant","content":[{"type":"text","text":"é"},{"type":"tool_use","id":"c","name":"n","input":{}}]}`
		found   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}`
	)
	gemini := func(reply string) []string {
		return []string{`{"request":{"contents":[` + asked + `]},"response":{"candidates":[{"content":` + signed + `}]}}`,
			`{"request":{"contents":[` + asked + `,` + reply + `,` + result + `]}}`}
	}
	anthropic := func(reply string) []string {
		return []string{`{"request":{"messages":[{"role":"user","content":"a"}]},"response":{"type":"message",` + thought[1:] + `}`,
			`{"request":{"messages":[{"role":"user","content":"a"},` + reply + `,` + found + `]}}`}
	}
	tests := []struct {
		name  string
		lines []string
		want  string // the model's message
		note  string
	}{
		{"Gemini's thoughtSignature is kept", gemini(bare), signed, "without its signatures (4 bytes): they are kept"},
		{"what is repeated as it was needs no note", gemini(signed), signed, ""},
		{"a signature of thinking is kept with its thinking", anthropic(same), thought, "without its signatures (4 bytes)"},
		{"a text that is left out is counted", anthropic(called), called, "leaves out 1 of 2 texts and calls of the response before it (2 bytes), and 4 bytes of signatures"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := Read(context.Background(), "s", []byte(strings.Join(tt.lines, "\n")), RequestLog)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Conversations) != 1 || len(f.Conversations[0].Messages) != 3 || string(f.Conversations[0].Messages[1].Body) != tt.want {
				t.Errorf("the messages are %q, want %s as the second of three", show(f), tt.want)
			}
			notes := ""
			for _, n := range f.Report.Notes {
				if !strings.HasPrefix(n.Text, "views ") {
					notes += n.Text
				}
			}
			if !strings.Contains(notes, tt.note) || (notes == "") != (tt.note == "") {
				t.Errorf("notes are %q, want %q", notes, tt.note)
			}
		})
	}
}
