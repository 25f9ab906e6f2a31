package compact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// wrote returns a call that writes a file, and its result.
func wrote(tool, path, text string) move {
	return then(calls("c", tool, fmt.Sprintf(`{"path":%q,"content":%s}`, path, literal(text))), answered("c", `"ok"`))
}

func TestArguments(t *testing.T) {
	t.Parallel()
	later := says(filler(1000))
	checkStage(t, "arguments", map[string]stageCase{
		"what was written long ago is omitted": {
			window: 800, moves: []move{wrote("Write", "a.go", filler(2000)), later}, want: []string{"1.0 omit"},
		},
		"what was just written stays": {
			window: 500, moves: []move{wrote("Write", "a.go", filler(2000))},
		},
		"small arguments stay": {
			window: 200, moves: []move{wrote("Write", "a.go", filler(390)), later},
		},
		"a call that reads stays": {
			window: 800, moves: []move{wrote("Read", "a.go", filler(2000)), later},
		},
		"another tool may be listed": {
			change: func(p *policy.Policy) { p.Arguments.Tools = []string{"note"} }, window: 800, moves: []move{wrote("note", "a.go", filler(2000)), later},
			want: []string{"1.0 omit"},
		},
		"other operations may be chosen": {
			change: func(p *policy.Policy) { p.Arguments.Operations = []policy.Operation{policy.CommandExecution} }, window: 800,
			moves: []move{wrote("Write", "a.go", filler(2000)), wrote("Bash", "", filler(2000)), later}, want: []string{"3.0 omit"},
		},
		"a call without an answer stays": {
			window: 800, moves: []move{calls("x", "Write", `{"path":"a.go","content":`+literal(filler(2000))+`}`), later},
		},
		"protected calls stay": {
			change: func(p *policy.Policy) { p.Protect.LastUnits = 2 }, window: 800, moves: []move{wrote("Write", "a.go", filler(2000)), later},
		},
		"as much as half of the target is enough to come after": {
			change: func(p *policy.Policy) { p.Arguments.AfterTokens = 10_000 }, window: 500, moves: []move{wrote("Write", "a.go", filler(2000)), later},
			want: []string{"1.0 omit"},
		},
		"arguments that have such a member already stay": {
			window: 800, moves: []move{then(calls("c", "Write", `{"_omitted":1,"content":`+literal(filler(2000))+`}`), answered("c", `"ok"`)), later},
		},
	})
}

func TestWhatIsLeftOfOmittedArguments(t *testing.T) {
	t.Parallel()
	text := filler(2000)
	sum := sha256.Sum256([]byte(text))
	for _, f := range written {
		in := input(t, f, only("arguments", nil), 800, wrote("Write", "a.go", text), says(filler(1000)))
		plan, made := compacted(t, in)
		left := show(t, f, made)[0]
		var got map[string]any
		if err := json.Unmarshal(said(left, &left.parts[0]), &got); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		want := map[string]any{"path": "a.go", "content": "[omitted]", "_omitted": map[string]any{
			"read_result": plan.Actions[0].Ref, "content": map[string]any{"bytes": 2000.0, "sha256": hex.EncodeToString(sum[:])},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f, diff)
		}
		if stored := string(plan.Results[0].Stored); stored != `{"path":"a.go","content":`+literal(text)+`}` {
			t.Errorf("%s: persisted %s", f, stored)
		}
	}
}

func TestArgumentsThatAreNoJSONAreOmittedWhole(t *testing.T) {
	t.Parallel()
	broken := then(calls("c", "Write", `{"path":"a.go","content":`+literal(filler(2000))), answered("c", `"ok"`))
	plan, made := compacted(t, input(t, session.OpenAIChat, only("arguments", nil), 800, broken, says(filler(1000))))
	if diff := cmp.Diff([]string{"1.0 omit"}, outcomes(plan)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	if want := `"arguments":"[omitted -- read_result ` + plan.Actions[0].Ref + ": "; !strings.Contains(string(made.Body), want) {
		t.Errorf("no %s in\n%s", want, made.Body)
	}
}
