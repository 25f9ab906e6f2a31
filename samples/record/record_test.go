package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newCopy is a workspace of a small repository.
func newCopy(t *testing.T) *workspace {
	t.Helper()
	from := &workspace{dir: filepath.Join(t.TempDir(), "from")}
	for name, text := range map[string]string{
		"a/one.go": "package a\n\nfunc One() {}\n", "a/two.go": "package a\n\nfunc Two() { One(); One() }\n", "a/a_test.go": "package a\n",
		"samples/old.json": `[{"role":"user"}]`, ".git/config": "secret", "bin/tool": "ELF",
	} {
		if err := from.write(name, text); err != nil {
			t.Fatal(err)
		}
	}
	w, err := newWorkspace(t.Context(), from.dir, filepath.Join(t.TempDir(), "repo"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestACopyHasTheSourcesAlone(t *testing.T) {
	t.Parallel()
	got, err := newCopy(t).files(".", ".go", ".json", "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/a_test.go", "a/one.go", "a/two.go"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestACopyHasNoConversationOfAnEarlierRecording(t *testing.T) {
	t.Parallel()
	got, err := newCopy(t).text("samples/old.json")
	if err != nil || got != "[]\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestToolsAnswerAsTheirCommandsDo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		call   call
		want   string
		failed bool
	}{
		{"a read numbers its lines", read("a/one.go"), "     1\tpackage a\n     2\t\n     3\tfunc One() {}\n", false},
		{"a part of a file keeps its numbers", readPart("a/one.go", 3, 1), "     3\tfunc One() {}\n", false},
		{"a search names files and lines", search(`One\(`, ".go"), "a/one.go:3:func One() {}\na/two.go:3:func Two() { One(); One() }\n", false},
		{"a search without a hit says so", search("Three", ".go"), "No matches found", false},
		{"an edit shows what is around it", edit("a/one.go", "{}", "{ }"), "File edited. The changed lines:\n     1\tpackage a\n     2\t\n     3\tfunc One() { }\n", false},
		{"an edit of what occurs twice fails", edit("a/two.go", "One()", "1"), "Error: old_string occurs 2 times in /repo/a/two.go, not once", true},
		{"a command that fails tells its exit code", shell("echo no; exit 3", ""), "Exit code 3\nno\n", true},
		{"a command without output says so", shell("true", ""), "(no output)", false},
		{"the copy's directory is shown as /repo", shell("pwd", ""), "/repo\n", false},
		{"what is outside cannot be read", read("../secret"), "Error: ../secret is not in /repo", true},
		{"bytes that are no text are replaced", shell(`printf 'a\377b'`, ""), "a\uFFFDb", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, failed, err := tt.call.answer(t.Context(), newCopy(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || failed != tt.failed {
				t.Errorf("failed is %v, want %v\n%s", failed, tt.failed, diff)
			}
		})
	}
}

func TestBothFormatsSayTheSame(t *testing.T) {
	t.Parallel()
	s := &story{ctx: t.Context(), work: newCopy(t)}
	s.said.system = "be brief"
	s.user("What is in a?")
	s.mustFail("I look.", read("a/one.go"), shell("exit 1", "Fail"))
	s.user("And?")
	s.assistant("A function.")
	if s.failure != nil {
		t.Fatal(s.failure)
	}
	tests := []struct {
		encode func(conversation) ([]byte, error)
		want   string
	}{
		{encodeOpenAIChat, `[
{"role":"system","content":"be brief"},
{"role":"user","content":"What is in a?"},
{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_000001","type":"function","function":{"name":"Read","arguments":"{\"file_path\": \"/repo/a/one.go\"}"}},{"id":"call_000002","type":"function","function":{"name":"Bash","arguments":"{\"command\": \"exit 1\", \"description\": \"Fail\"}"}}]},
{"role":"tool","tool_call_id":"call_000001","content":"     1\tpackage a\n     2\t\n     3\tfunc One() {}\n"},
{"role":"tool","tool_call_id":"call_000002","content":"Exit code 1\n"},
{"role":"user","content":"And?"},
{"role":"assistant","content":"A function."}
]
`},
		{encodeAnthropic, `{"system": "be brief",
"messages": [
{"role":"user","content":[{"type":"text","text":"What is in a?"}]},
{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_000001","name":"Read","input":{"file_path":"/repo/a/one.go"}},{"type":"tool_use","id":"toolu_000002","name":"Bash","input":{"command":"exit 1","description":"Fail"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_000001","content":"     1\tpackage a\n     2\t\n     3\tfunc One() {}\n"},{"type":"tool_result","tool_use_id":"toolu_000002","is_error":true,"content":"Exit code 1\n"},{"type":"text","text":"And?"}]},
{"role":"assistant","content":[{"type":"text","text":"A function."}]}
]}
`},
	}
	for _, tt := range tests {
		got, err := tt.encode(s.said)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAPlotStopsWhereACommandDoesNotEndAsItShould(t *testing.T) {
	t.Parallel()
	s := &story{ctx: t.Context(), work: newCopy(t)}
	s.mustFail("This should fail.", shell("echo well", "Succeed"))
	s.assistant("This is not recorded.")
	if s.failure == nil || !strings.Contains(s.failure.Error(), "well") || len(s.said.turns) != 1 {
		t.Errorf("failure %v after %d turns", s.failure, len(s.said.turns))
	}
}

func TestACancelledRecordingIsNoResult(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &story{ctx: ctx, work: newCopy(t)}
	s.assistant("I wait.", shell("sleep 60", "Wait"))
	if s.failure == nil || len(s.said.turns) != 0 {
		t.Errorf("failure %v after %d turns", s.failure, len(s.said.turns))
	}
}
