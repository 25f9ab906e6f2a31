package compact

import (
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

func TestStale(t *testing.T) {
	t.Parallel()
	edits := func(path string) move { return returns("Edit", path, "ok") }
	checkStage(t, "stale", map[string]stageCase{
		"what was read of a file is out of date once it is written": {
			window: 600, moves: []move{gives("Read", "a.go", 2000), edits("a.go")}, want: []string{"2.0 stale"},
		},
		"what is read afterwards is not": {
			window: 500, moves: []move{edits("a.go"), gives("Read", "a.go", 2000)},
		},
		"a write of another file changes nothing": {
			window: 500, moves: []move{gives("Read", "a.go", 2000), edits("b.go")},
		},
		"a file may be called by its absolute or its relative name": {
			window: 600, moves: []move{gives("Read", "/home/me/shop/cart/a.go", 2000), edits("cart/a.go")}, want: []string{"2.0 stale"},
		},
		"a file of the same name elsewhere is another": {
			window: 500, moves: []move{gives("Read", "cart/a.go", 2000), edits("till/a.go")},
		},
		"a write that has not been answered says nothing": {
			window: 500, moves: []move{gives("Read", "a.go", 2000), calls("w", "Edit", `{"path":"a.go"}`), says("done")},
		},
		"a write whose answer is empty says nothing": {
			window: 500, moves: []move{gives("Read", "a.go", 2000), returns("Edit", "a.go", "")},
		},
		"of many files all have to be written": {
			window: 500, moves: []move{reads("read_many_files", `{"paths":["a.go","b.go"]}`), edits("a.go")},
		},
		"of many files all are written": {
			window: 600, moves: []move{reads("read_many_files", `{"paths":["a.go","b.go"]}`), edits("b.go"), edits("a.go")}, want: []string{"2.0 stale"},
		},
		"a patch writes the files that it names": {
			window: 600, moves: []move{
				gives("Read", "a.go", 2000),
				calls("c", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n-a\n+b\n*** End Patch"}`), answered("c", `"Done!"`),
			}, want: []string{"2.0 stale"},
		},
		"what a search found stays": {
			window: 500, moves: []move{gives("Grep", "a.go", 2000), edits("a.go")},
		},
		"a small result stays": {
			window: 100, moves: []move{gives("Read", "a.go", 400), edits("a.go")},
		},
		"the tenant's own table says what reads and what writes": {
			change: func(p *policy.Policy) {
				p.Tools.Operations = map[string]policy.Operation{"show": policy.FileRead, "put": policy.FileWrite}
			}, window: 600,
			moves: []move{gives("show", "a.go", 2000), returns("put", "a.go", "ok")}, want: []string{"2.0 stale"},
		},
		"a write among the protected units counts": {
			change: func(p *policy.Policy) { p.Protect.LastUnits = 1 }, window: 600, moves: []move{gives("Read", "a.go", 2000), edits("a.go")},
			want: []string{"2.0 stale"},
		},
		"a read among the protected units stays": {
			change: func(p *policy.Policy) { p.Protect.LastUnits = 2 }, window: 500, moves: []move{gives("Read", "a.go", 2000), edits("a.go")},
		},
	})
}

func TestAFailedWriteMakesNothingStale(t *testing.T) {
	t.Parallel()
	failed := then(calls("c", "Edit", `{"path":"a.go"}`), fails("c", `"no such text"`))
	plan, _ := compacted(t, input(t, session.Anthropic, only("stale", nil), 500, gives("Read", "a.go", 2000), failed))
	if plan.Changed() {
		t.Errorf("got %v", outcomes(plan))
	}
}

func TestAStaleReadNamesTheFirstWrite(t *testing.T) {
	t.Parallel()
	in := input(t, session.OpenAIChat, only("stale", nil), 600, gives("Read", "a.go", 2000), returns("Edit", "a.go", "ok"), returns("Edit", "a.go", "ok"))
	plan, _ := compacted(t, in)
	want := "[Out of date: the file was written at message 4 -- the old text: read_result " + plan.Actions[0].Ref + "]"
	if got := current(t, in)[2]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
