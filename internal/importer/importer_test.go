package importer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// readable is a file, and what is read of it.
type readable struct {
	name   string
	file   string
	source Source
	want   []string // see show
}

// read reads the file.
func (s readable) read(t *testing.T) *File {
	t.Helper()
	f, err := Read(context.Background(), "s", []byte(s.file), Auto)
	if err != nil {
		t.Fatal(err)
	}
	if f.Source != s.source {
		t.Errorf("source %q, want %q", f.Source, s.source)
	}
	if diff := cmp.Diff(s.want, show(f)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	checkLaws(t, f)
	return f
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	tests := []readable{
		{
			"an array of messages keeps each element's bytes",
			`[ {"role":"system", "content":"s\/"},` + "\n" + `  {"content":null,"role":"assistant","tool_calls":[]}  ]`,
			OpenAIChat,
			[]string{`1 {"role":"system", "content":"s\/"}`, `2 {"content":null,"role":"assistant","tool_calls":[]}`},
		},
		{
			"of a logged request the conversation is its messages and the response's message",
			`{"messages":[{"role":"user","content":"a"}],"raw_messages":[{"role":"user","content":"a"}],"response":{"choices":[{"index":0,"message":{"role":"assistant","content":"b","refusal":null}}]}}`,
			OpenAIChat,
			[]string{`1 {"role":"user","content":"a"}`, `2 {"role":"assistant","content":"b","refusal":null}`},
		},
		{
			"a recorded exchange is a request and a response with bodies",
			`{"request":{"method":"POST","body":{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"a"}]}},` +
				`"response":{"status":200,"body":{"type":"message","role":"assistant","content":[{"type":"text","text":"b"}],"usage":{"output_tokens":1}}}}`,
			Anthropic,
			[]string{
				`1 {"role":"system","content":[{"type":"text","text":"s"}]}`, `1 {"role":"user","content":"a"}`,
				`2 {"role":"assistant","content":[{"type":"text","text":"b"}]}`,
			},
		},
		{
			"Anthropic's system prompt becomes a message before the others",
			`{"model":"claude","system":"be \u0062rief","messages":[{"role":"user","content":"a"}]}`,
			Anthropic,
			[]string{`1 {"role":"system","content":"be \u0062rief"}`, `1 {"role":"user","content":"a"}`},
		},
		{
			"Anthropic's blocks tell its arrays from OpenAI's",
			`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}]`,
			Anthropic,
			[]string{
				`1 {"role":"user","content":"a"}`,
				`2 {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}`,
			},
		},
		{
			"a response alone is the message that it holds",
			`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"b"}],"usage":{}}`,
			Anthropic,
			[]string{`1 {"role":"assistant","content":[{"type":"text","text":"b"}]}`},
		},
		{
			"a system message in front does not hide whose blocks follow",
			`[{"role":"system","content":"s"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"x"}]}]`,
			Anthropic,
			[]string{
				`1 {"role":"system","content":"s"}`,
				`2 {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"x"}]}`,
			},
		},
		{
			"a Responses request with a string has one message, behind its instructions",
			`{"model":"m","instructions":"s\/","input":"a\u0000"}`,
			OpenAIResponses,
			[]string{`1 {"type":"message","role":"system","content":"s\/"}`, `1 {"role":"user","content":"a\u0000"}`},
		},
		{
			"the items of a response are its output",
			`{"id":"resp_1","object":"response","instructions":null,"output":[{"type":"reasoning","summary":[]}, {"type":"message","role":"assistant","content":[]}]}`,
			OpenAIResponses,
			[]string{`1 {"type":"reasoning","summary":[]}`, `2 {"type":"message","role":"assistant","content":[]}`},
		},
		{
			"Responses items in an array are told by their types or their blocks",
			`[{"role":"user","content":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}]`,
			OpenAIResponses,
			[]string{
				`1 {"role":"user","content":"a"}`,
				`2 {"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}`,
			},
		},
		{
			"parts without a type are Gemini's; a system instruction may be a string",
			`{"systemInstruction":"s","contents":[{"parts":[{"text":"a"}]}]}`,
			Gemini,
			[]string{`1 {"role":"system","parts":[{"text":"s"}]}`, `1 {"parts":[{"text":"a"}]}`},
		},
		{
			"an array of Gemini contents is told by its role model",
			`[{"role":"user","parts":[]},{"role":"model","parts":[{"text":"b"}]}]`,
			Gemini,
			[]string{`1 {"role":"user","parts":[]}`, `2 {"role":"model","parts":[{"text":"b"}]}`},
		},
		{
			"parts with a type are the AI SDK's, also in the body that its hook sends",
			`{"id":"chat","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"a"}]}],"trigger":"submit-message"}`,
			AISDK,
			[]string{`1 {"id":"m1","role":"user","parts":[{"type":"text","text":"a"}]}`},
		},
		{
			"messages that both could have sent are OpenAI Chat's, a byte order mark aside",
			"\xef\xbb\xbf" + `[{"role":"user","content":"a"}]`,
			OpenAIChat,
			[]string{`1 {"role":"user","content":"a"}`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if f := tt.read(t); string(f.Conversations[0].Format) != string(tt.source) {
				t.Errorf("format %q, want %q", f.Conversations[0].Format, tt.source)
			}
		})
	}
}

func TestDocumentElementsThatAreNoMessagesAreKept(t *testing.T) {
	t.Parallel()
	f, err := Read(context.Background(),
		"s",
		[]byte(
			`[{"role":"user","content":"a"}, 7, {"content":"x"}, {"role":"user","content":`+strings.Repeat(
				"[", 70,
			)+strings.Repeat(
				"]",
				70,
			)+`}]`,
		),
		OpenAIChat,
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, bad := range f.Report.Rejected {
		got = append(got, bad.Reason[:min(len(bad.Reason), 29)])
	}
	if diff := cmp.Diff([]string{"not a JSON object", "no role", "the message cannot be stored:"}, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if len(f.Conversations[0].Messages) != 1 {
		t.Errorf("%d messages, want 1", len(f.Conversations[0].Messages))
	}
}

func TestUnsupportedFilesAreNamed(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, want string }{
		{"nothing", "", "an empty file"},
		{"text", "hello\nworld", "not JSON, nor lines of JSON: as one JSON value it is wrong at byte 0"},
		{"a truncated document", `[{"role":"user","content":"a"},`, "ends early, after 31 bytes on line 1: the rest is missing; as far as it goes, it looks like OpenAI Chat messages"},
		{"a document that ends in a string", "{\n  \"chat_messages\": [\n    {\"sender\": \"human\",\n     \"text\": \"\\\"a,", "ends early, after 65 bytes on line 4: the rest is missing; as far as it goes, it looks like Claude.ai's exports"},
		{"a document that ends behind a string", "{\n  \"mapping\": {},\n  \"title\": \"t\",\n  \"tags\": [\n    \"x\"\n", "looks like ChatGPT exports"},
		{"a document of no known kind that ends early", `{"a": [1, {"b": 2`, "looks like a JSON object with the members a"},
		{
			"calls of no known format",
			`{"messages":[{"role":"assistant","tool_calls":[{"tool":"n"}]}]}`,
			"the members messages",
		},
		{
			"blocks without a type",
			`{"system":[{"words":"s"}],"messages":[{"role":"user","content":[{"words":"a"}]}]}`,
			"the members messages, system",
		},
		{
			"roles that are no strings",
			`[{"role":{"value":"user"},"words":[]}]`,
			"a JSON array of objects with the members role, words",
		},
		{
			"lines of something else",
			`{"verse":1}` + "\n" + `{"verse":2}`,
			"a file of JSON lines with the members verse",
		},
		{"an array of something else", `[{"type":"start"}]`, "a JSON array of objects with the members type"},
		{"an object without members", `{}`, "a JSON object with no members"},
		{
			"an object with many members",
			`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`,
			"the members a, b, c, d, e, f and 1 more",
		},
		{"an array of numbers", `[1]`, "whose elements are no objects"},
		{"a number", `7`, "no object and no list of objects"},
		{"only lines that are broken", "{\n{", "wrong at byte 2"},
		{"a request without messages", `{"model":"m","input":7}`, "a JSON object with the members input, model"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(context.Background(), "s", []byte(tt.file), Auto)
			var unsupported *UnsupportedError
			if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), "varve import --help") {
				t.Errorf("error %v, want an UnsupportedError with %q", err, tt.want)
			}
		})
	}
}

func TestFromOverridesDetection(t *testing.T) {
	t.Parallel()
	f, err := Read(context.Background(), "s", []byte(`[{"role":"user","content":"a"}]`), Anthropic)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Conversations[0].Format; got != session.Anthropic {
		t.Errorf("format %s, want anthropic", got)
	}
	for _, from := range []Source{OpenAIChat, Anthropic, OpenAIResponses, Gemini, AISDK, GeminiCLI} {
		if _, err := Read(context.Background(), "s", []byte(`{"traj":[]}`), from); err == nil {
			t.Errorf("a document without messages was read as %s", from)
		}
	}
	if _, err := Read(context.Background(), "s", []byte(`[]`), "poetry"); err == nil {
		t.Error("a file was read as a source that there is not")
	}
}

func TestSessionIDs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"/a/b/chat 1.jsonl": "chat-1", "x.traj.json": "x.traj", "chat.json.gz": "chat", "chat.zst": "chat", "ünï.json": "-n-", "..json": "import", "...": "import",
		strings.Repeat("a", 300) + ".json": strings.Repeat("a", 255),
	} {
		if got := SessionID(name); got != want {
			t.Errorf("SessionID(%q) = %q, want %q", name, got, want)
		}
	}
	if got := suffixed(strings.Repeat("a", 255), "-agent-x/y"); got != strings.Repeat("a", 245)+"-agent-x-y" {
		t.Errorf("suffixed is %q", got)
	}
}

func TestClientIDsRepeatAndTellMessagesApart(t *testing.T) {
	t.Parallel()
	file := []byte(`[{"role":"user","content":"a"},{"role":"user","content":"a"}]`)
	first, _ := Read(context.Background(), "s", file, Auto)
	again, _ := Read(context.Background(), "other", file, Auto)
	a, b := first.Conversations[0].Messages, again.Conversations[0].Messages
	if a[0].ClientID != "i1-55576ddac5287160" {
		t.Errorf("client id is %q", a[0].ClientID)
	}
	if a[0].ClientID != b[0].ClientID || a[0].ClientID == a[1].ClientID {
		t.Errorf("client ids %q and %q, then %q", a[0].ClientID, a[1].ClientID, b[0].ClientID)
	}
}

// FuzzRead holds Read to its laws on any bytes: it does not panic, every line is accounted for, and every message is
// something a session can hold.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no testdata: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("["))
	f.Add([]byte(user(`"a"`) + `{"type":"summary"}` + "\n{\"type\""))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, from := range append(Sources(), Auto) {
			got, err := Read(context.Background(), "s", data, from)
			if err == nil {
				checkLaws(t, got)
			}
		}
	})
}

func checkLaws(t *testing.T, f *File) {
	t.Helper()
	skipped, unread := 0, 0
	for _, n := range f.Report.Skipped {
		skipped += n
	}
	for _, bad := range f.Report.Rejected {
		if !strings.HasPrefix(bad.Reason, "the message ") {
			unread++
		}
	}
	if f.Report.Lines != f.Report.Imported+skipped+unread {
		t.Errorf(
			"%d lines, but %d imported, %d skipped and %d rejected", f.Report.Lines, f.Report.Imported, skipped,
			unread,
		)
	}
	for _, c := range f.Conversations {
		for _, m := range c.Messages {
			if _, err := wire.Accept(c.Format, m.Body); err != nil {
				t.Errorf("line %d: %v", m.Line, err)
			}
			if c.Format != session.OpenAIResponses && c.Format != session.Gemini &&
				parseObject(m.Body).text("role") == "" {
				t.Errorf("line %d: no role in %.80s", m.Line, m.Body)
			}
		}
	}
}
