package importer

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

func TestLinesThatAreMessagesEach(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		lines  []string
		source Source
	}{
		{"a question and its answer", []string{`{"role":"user","content":"a"}`, `{"role":"assistant", "content":"b\/"}`}, OpenAIChat},
		{"a single message", []string{`{"role":"user","content":"a"}`}, OpenAIChat},
		{"Chat's calls", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c","content":"r"}`,
		}, OpenAIChat},
		{"Anthropic's blocks, whichever line has them", []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}`,
		}, Anthropic},
		{"Responses items, some of them without a type", []string{
			`{"role":"user","content":"a"}`, `{"type":"reasoning","summary":[]}`,
			`{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c","output":"r"}`,
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}`,
		}, OpenAIResponses},
		{"Gemini's contents", []string{
			`{"role":"user","parts":[{"text":"a"}]}`, `{"role":"model","parts":[{"text":"b"}]}`,
		}, Gemini},
		{"the AI SDK's messages", []string{
			`{"id":"1","role":"user","parts":[{"type":"text","text":"a"}]}`,
			`{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"text","text":"b"}]}`,
		}, AISDK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := "\n" + strings.Join(tt.lines, "\r\n") + "\n\n"
			for _, from := range []Source{Auto, tt.source} {
				f, err := Read(context.Background(), "s", []byte(file), from)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, m := range f.Conversations[0].Messages {
					got = append(got, string(m.Body))
				}
				if diff := cmp.Diff(tt.lines, got); diff != "" || f.Source != tt.source || len(f.Conversations) > 1 {
					t.Errorf("from %q: source %q, %d conversations (-want +got):\n%s", from, f.Source,
						len(f.Conversations), diff)
				}
				checkLaws(t, f)
			}
		})
	}
}

func TestALineThatIsNoMessageIsKeptWithItsReason(t *testing.T) {
	t.Parallel()
	f, err := Read(context.Background(), "s", []byte(`{"role":"user","content":"a"}
{"role":"assistant","content":"b"
{"title":"a chat"}
{"role":"user","content":"c"}{"role":"assistant","content":"d"}`), Auto)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(f); len(got) != 3 || f.Source != OpenAIChat {
		t.Errorf("source %q, messages %q", f.Source, got)
	}
	var lines []int
	for _, bad := range f.Report.Rejected {
		lines = append(lines, bad.Line)
	}
	if !slices.Equal(lines, []int{2, 3}) || len(f.Report.Notes) == 0 {
		t.Errorf("rejected lines are %v, notes %v", lines, f.Report.Notes)
	}
	checkLaws(t, f)
}

func TestListsOfOpenAIsAPI(t *testing.T) {
	t.Parallel()
	const (
		question = `{"id":"msg_1","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"a"}]}`
		call     = `{"id":"fc_1","type":"function_call","call_id":"c","name":"n","arguments":"{}","status":"completed"}`
		output   = `{"id":"fc_2","type":"function_call_output","call_id":"c","output":"r","status":"completed"}`
		answer   = `{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]}`
		older    = `{"id":"msg_67ccd3acc8d48190a77525dc6de64b4104becb25c45c1d42","type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`
		newer    = `{"id":"msg_67ccd3aec8d48190a77525dc6de64b4104becb25c45c1d42","type":"message","role":"user","content":[{"type":"input_text","text":"b"}]}`
		stored   = `{"role":"user","content":"a","name":null,"content_parts":null,"id":"chatcmpl-1-0"}`
		reply    = `{"role":"assistant","content":"b","content_parts":null,"id":"chatcmpl-1-1"}`
	)
	tests := []struct {
		name, more string
		data, want []string
		source     Source
		notes      int
	}{
		{"items, newest first as they come", "false", []string{answer, output, call, question}, []string{question, call, output, answer}, OpenAIResponses, 1},
		{"items in the order that was asked for", "false", []string{question, call, output, answer}, []string{question, call, output, answer}, OpenAIResponses, 0},
		{"items without a call", "false", []string{answer, question}, []string{question, answer}, OpenAIResponses, 1},
		{"items whose ids tell their times", "true", []string{newer, older}, []string{older, newer}, OpenAIResponses, 2},
		{"stored messages of Chat Completions", "false", []string{stored, reply}, []string{stored, reply}, OpenAIChat, 0},
		{"one item", "false", []string{question}, []string{question}, OpenAIResponses, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := `{"object":"list","data":[` + strings.Join(tt.data, ", ") + `],"first_id":"x","last_id":"y","has_more":` + tt.more + `}`
			f, err := Read(context.Background(), "s", []byte(file), Auto)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range f.Conversations[0].Messages {
				got = append(got, string(m.Body))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || f.Source != tt.source {
				t.Errorf("source %q (-want +got):\n%s", f.Source, diff)
			}
			var about []string
			for _, n := range f.Report.Notes {
				if strings.HasPrefix(n.Text, "the list ") {
					about = append(about, n.Text)
				}
			}
			if len(about) != tt.notes {
				t.Errorf("notes are %q, want %d", about, tt.notes)
			}
		})
	}
}

func TestRefusalsSayWhatIsMissingWhere(t *testing.T) {
	t.Parallel()
	tests := []struct{ file, want string }{
		{`{"request":{"messages":[{"role":"user","content":[{"words":"a"}]}]},"response":{}}`, "`request.messages[0].content[0]` has no `type`"},
		{`{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"tool":"n"}]}]}`, "`messages[1].tool_calls[0]` has no `function`"},
		{`[{"role":"user","content":[{"type":"tool-call"}]}]`, "`[0].content[0]` has the type tool-call"},
		{`{"messages":{}}`, "`messages` is no array"},
		{`{"contents":7}`, "`contents` is no array"},
		{`{"messages":[]}`, "`messages` is empty"},
		{`{"messages":[{"text":"a"}]}`, "`messages[0]` has no `role`"},
		{`{"messages":["a"]}`, "`messages[0]` is no object"},
		{`[{"role":{"value":"user"}}]`, "`[0].role` is no string"},
		{`{"role":"user","content":[{"words":"a"}]}` + "\n" + `{"role":"user","content":[{"words":"b"}]}`, "`content[0]` has no `type`"},
		{`{"verse":1}`, "nothing in it looks like a message"},
	}
	for _, tt := range tests {
		_, err := Read(context.Background(), "s", []byte(tt.file), Auto)
		if !errors.As(err, new(*UnsupportedError)) || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 250 {
			t.Errorf("%s: %v, want %q in one line", tt.file, err, tt.want)
		}
	}
}

func TestKindsNamesEverySource(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(Kinds()), "\n")
	for i, s := range sources {
		if len(lines) != len(sources) || !strings.Contains(lines[i], string(s.name)+" ") || !strings.Contains(lines[i], s.title) {
			t.Fatalf("%s is not in its line of\n%s", s.name, Kinds())
		}
	}
}

func TestFilesInUTF16(t *testing.T) {
	t.Parallel()
	text := utf16.Encode([]rune("\ufeff{\"role\":\"user\",\"content\":\"é 😀\"}\n{\"role\":\"user\",\"content\":\"?\"}\n"))
	text[slices.Index(text, '?')] = 0xd800
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var file []byte
		for _, unit := range text {
			file = order.AppendUint16(file, unit)
		}
		f, err := Read(context.Background(), "s", file, Auto)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{`1 {"role":"user","content":"é 😀"}`, `2 {"role":"user","content":"\ud800"}`}
		if diff := cmp.Diff(want, show(f)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", order, diff)
		}
	}
}
