package samples_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newCopy returns a workspace with a small repository.
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
		{
			"a read numbers its lines", call{Read: "a/one.go"},
			"     1\tpackage a\n     2\t\n     3\tfunc One() {}\n", false,
		},
		{
			"a part of a file keeps its numbers", call{Read: "a/one.go", offset: 3, limit: 1},
			"     3\tfunc One() {}\n", false,
		},
		{
			"a search names files and lines", call{Search: `One\(`, In: ".go"},
			"a/one.go:3:func One() {}\na/two.go:3:func Two() { One(); One() }\n", false,
		},
		{"a search without a hit says so", call{Search: "Three", In: ".go"}, "No matches found", false},
		{
			"an edit shows what is around it", call{Edit: "a/one.go", Before: "{}", After: "{ }"},
			"File edited. The changed lines:\n     1\tpackage a\n     2\t\n     3\tfunc One() { }\n", false,
		},
		{
			"an edit of what occurs twice fails", call{Edit: "a/two.go", Before: "One()", After: "1"},
			"Error: old_string occurs 2 times in /repo/a/two.go, not once", true,
		},
		{
			"a command that fails tells its exit code", call{Shell: "echo no; exit 3", Description: ""},
			"Exit code 3\nno\n", true,
		},
		{"a command without output says so", call{Shell: "true", Description: ""}, "(no output)", false},
		{"the copy's directory is shown as /repo", call{Shell: "pwd", Description: ""}, "/repo\n", false},
		{"what is outside cannot be read", call{Read: "../secret"}, "Error: ../secret is not in /repo", true},
		{"bytes that are no text are replaced", call{Shell: `printf 'a\377b'`, Description: ""}, "a\uFFFDb", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := newCopy(t).answer(t.Context(), tt.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.text); diff != "" || got.failed != tt.failed {
				t.Errorf("failed is %v, want %v\n%s", got.failed, tt.failed, diff)
			}
		})
	}
}

func TestBothFormatsSayTheSame(t *testing.T) {
	t.Parallel()
	p := &player{ctx: t.Context(), work: newCopy(t)}
	err := p.play(story{Steps: []step{
		{User: "What is in a?"},
		{Says: "I look.", LastCall: "fails", Calls: []call{{Read: "a/one.go"}, {Shell: "exit 1", Description: "Fail"}}},
		{User: "And?"},
		{Says: "A function."},
	}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		format string
		want   string
	}{
		{"openai-chat", `[
{"role":"system","content":"be brief"},
{"role":"user","content":"What is in a?"},
{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_000001","type":"function","function":{"name":"Read","arguments":"{\"file_path\": \"/repo/a/one.go\"}"}},{"id":"call_000002","type":"function","function":{"name":"Bash","arguments":"{\"command\": \"exit 1\", \"description\": \"Fail\"}"}}]},
{"role":"tool","tool_call_id":"call_000001","content":"     1\tpackage a\n     2\t\n     3\tfunc One() {}\n"},
{"role":"tool","tool_call_id":"call_000002","content":"Exit code 1\n"},
{"role":"user","content":"And?"},
{"role":"assistant","content":"A function."}
]
`},
		{"anthropic", `{"system": "be brief",
"messages": [
{"role":"user","content":[{"type":"text","text":"What is in a?"}]},
{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_000001","name":"Read","input":{"file_path":"/repo/a/one.go"}},{"type":"tool_use","id":"toolu_000002","name":"Bash","input":{"command":"exit 1","description":"Fail"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_000001","content":"     1\tpackage a\n     2\t\n     3\tfunc One() {}\n"},{"type":"tool_result","tool_use_id":"toolu_000002","is_error":true,"content":"Exit code 1\n"},{"type":"text","text":"And?"}]},
{"role":"assistant","content":[{"type":"text","text":"A function."}]}
]}
`},
	}
	for _, tt := range tests {
		got, err := encoders[tt.format]("be brief", p.turns)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAStoryStopsWhereACommandDoesNotEndAsItShould(t *testing.T) {
	t.Parallel()
	p := &player{ctx: t.Context(), work: newCopy(t)}
	err := p.play(story{Steps: []step{
		{Says: "This should fail.", LastCall: "fails", Calls: []call{{Shell: "echo well", Description: "Succeed"}}},
		{Says: "This is not recorded."},
	}})
	if err == nil || !strings.Contains(err.Error(), "well") || len(p.turns) != 1 {
		t.Errorf("error %v after %d turns", err, len(p.turns))
	}
}

func TestACancelledRecordingIsNoResult(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &player{ctx: ctx, work: newCopy(t)}
	err := p.play(story{Steps: []step{{Says: "I wait.", Calls: []call{{Shell: "sleep 60", Description: "Wait"}}}}})
	if err == nil || len(p.turns) != 0 {
		t.Errorf("error %v after %d turns", err, len(p.turns))
	}
}
