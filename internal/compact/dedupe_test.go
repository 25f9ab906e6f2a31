package compact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// reads returns a call of a tool with any arguments and a large result.
func reads(tool, arguments string) move {
	return then(calls("c", tool, arguments), answered("c", literal(filler(2000))))
}

func TestDedupe(t *testing.T) {
	t.Parallel()
	twice := []move{gives("Read", "a", 2000), gives("Read", "a", 2000)}
	checkStage(t, "dedupe", map[string]stageCase{
		"an older result of the same call is superseded": {
			window: 1000, moves: []move{gives("Read", "a", 2000), gives("Read", "b", 2000), gives("Read", "a", 2000)}, want: []string{"2.0 stub"},
		},
		"the order of the arguments does not count": {
			window: 1000, moves: []move{reads("Read", `{"path":"a","limit":5}`), reads("Read", `{ "limit": 5, "path": "a" }`)}, want: []string{"2.0 stub"},
		},
		"equal arguments of another tool supersede nothing": {
			window: 500, moves: []move{gives("Read", "a", 2000), gives("Grep", "a", 2000)},
		},
		"keep_last 2 keeps the two newest": {
			change: func(p *policy.Policy) { p.Dedupe.KeepLast = 2 }, window: 1000, moves: append(twice, twice[0]), want: []string{"2.0 stub"},
		},
		"a small result is not worth a stub": {
			window: 500, moves: []move{gives("Read", "a", 200), gives("Read", "b", 2000), gives("Read", "a", 200)},
		},
		"an empty newer result supersedes nothing": {
			window: 500, moves: []move{gives("Read", "a", 2000), returns("Read", "a", "")},
		},
		"a denied tool is left alone": {
			change: func(p *policy.Policy) { p.Dedupe.DenyTools = []string{"Read"} }, window: 500, moves: twice,
		},
		"only allowed tools are deduplicated": {
			change: func(p *policy.Policy) { p.Dedupe.AllowTools = []string{"Grep"} }, window: 1000,
			moves: append(twice, gives("Grep", "a", 2000), gives("Grep", "a", 2000)), want: []string{"6.0 stub"},
		},
		"a denied operation is left alone": {
			change: func(p *policy.Policy) { p.Dedupe.DenyOperations = []policy.Operation{policy.FileRead} }, window: 500, moves: twice,
		},
		"only allowed operations are deduplicated": {
			change: func(p *policy.Policy) { p.Dedupe.AllowOperations = []policy.Operation{policy.Search} }, window: 1000,
			moves: append(twice, gives("Grep", "a", 2000), gives("Grep", "a", 2000)), want: []string{"6.0 stub"},
		},
		"the tenant's own table says what a tool does": {
			change: func(p *policy.Policy) {
				p.Dedupe.AllowOperations, p.Tools.Operations = []policy.Operation{policy.Search}, map[string]policy.Operation{"Read": policy.Search}
			}, window: 1000, moves: append(twice, gives("Grep", "a", 2000)), want: []string{"2.0 stub"},
		},
		"the last units are not deduplicated": {
			change: func(p *policy.Policy) { p.Protect.LastUnits = 2 }, window: 500, moves: twice,
		},
	})
}

func TestDedupeByResource(t *testing.T) {
	t.Parallel()
	byResource := func(p *policy.Policy) { p.Dedupe.Identity = policy.ByResource }
	checkStage(t, "dedupe", map[string]stageCase{
		"one path however it is written": {
			change: byResource, window: 800, moves: []move{reads("Read", `{"path":"src\\a.go"}`), reads("Read", `{"file_path":"src/a.go/"}`)},
			want: []string{"2.0 stub"},
		},
		"another part of a file is another resource": {
			change: byResource, window: 500, moves: []move{reads("Read", `{"path":"a","offset":1}`), reads("Read", `{"path":"a","offset":100}`)},
		},
		"other arguments do not count": {
			change: byResource, window: 800, moves: []move{reads("Read", `{"path":"a","why":"first"}`), reads("Read", `{"path":"a","why":"again"}`)},
			want: []string{"2.0 stub"},
		},
		"a call for nothing in particular is like no other": {
			change: byResource, window: 500, moves: []move{reads("status", `{}`), reads("status", `{}`)},
		},
	})
}

func TestDedupeByFields(t *testing.T) {
	t.Parallel()
	byFields := func(toolOnly bool) func(*policy.Policy) {
		return func(p *policy.Policy) {
			p.Dedupe.Identity, p.Dedupe.ToolOnly, p.Dedupe.Fields = policy.ByFields, toolOnly, map[string][]string{"query": {"table", "id"}}
		}
	}
	checkStage(t, "dedupe", map[string]stageCase{
		"the fields count and no other": {
			change: byFields(false), window: 800,
			moves: []move{reads("query", `{"table":"t","id":1,"why":"a"}`), reads("query", `{"id":1,"why":"b","table":"t"}`)}, want: []string{"2.0 stub"},
		},
		"another value of a field is another resource": {
			change: byFields(false), window: 500, moves: []move{reads("query", `{"table":"t","id":1}`), reads("query", `{"table":"t","id":2}`)},
		},
		"tool_only takes all calls of a tool without fields for one": {
			change: byFields(true), window: 800, moves: []move{reads("status", `{"a":1}`), reads("status", `{"b":2}`)}, want: []string{"2.0 stub"},
		},
		"without tool_only a tool without fields is told by all arguments": {
			change: byFields(false), window: 1200, moves: []move{reads("status", `{"a":1}`), reads("status", `{"b":2}`), reads("status", `{"a":1}`)},
			want: []string{"2.0 stub"},
		},
	})
}

func TestDedupeOfArguments(t *testing.T) {
	t.Parallel()
	writes := func(text string) move {
		return then(calls("c", "Write", `{"path":"a","text":`+literal(text)+`}`), answered("c", `"ok"`))
	}
	both := func(p *policy.Policy) {
		p.Dedupe.Identity, p.Dedupe.Arguments, p.Dedupe.ArgumentBytes = policy.ByResource, true, 100
	}
	checkStage(t, "dedupe", map[string]stageCase{
		"the large arguments of a superseded call are omitted": {
			change: both, window: 800, moves: []move{writes(filler(2000)), writes(filler(2000))}, want: []string{"1.0 omit"},
		},
		"small ones stay": {
			change: both, window: 500, moves: []move{writes(filler(90)), writes(filler(3000))},
		},
		"they stay where the policy does not say so": {
			change: func(p *policy.Policy) { p.Dedupe.Identity = policy.ByResource }, window: 500, moves: []move{writes(filler(2000)), writes(filler(2000))},
		},
	})
}

func TestFailedCallsSupersedeNothing(t *testing.T) {
	t.Parallel()
	again := then(calls("c", "Read", `{"path":"a"}`), fails("c", literal(filler(2000))))
	plan, _ := compacted(t, input(t, session.Anthropic, only("dedupe", nil), 500, gives("Read", "a", 2000), again))
	if plan.Changed() {
		t.Errorf("a read that failed took the place of one that did not: %v", outcomes(plan))
	}
}

func TestAFailedReadIsSuperseded(t *testing.T) {
	t.Parallel()
	failed := then(calls("c", "Read", `{"path":"a"}`), fails("c", literal(filler(2000))))
	plan, _ := compacted(t, input(t, session.Anthropic, only("dedupe", nil), 800, failed, gives("Read", "a", 2000)))
	if diff := cmp.Diff([]string{"2.0 stub"}, outcomes(plan)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestSecretsInAStubAreHidden(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for redact, want := range map[bool]bool{true: false, false: true} {
		p := only("dedupe", func(p *policy.Policy) {
			p.Dedupe.Identity, p.Dedupe.Redact, p.Wording.Stub = policy.ByResource, redact, "[{resource} {ref}]"
		})
		call := reads("fetch", `{"query":"https://x.test/?token=`+secret+`"}`)
		got := current(t, input(t, session.OpenAIChat, p, 800, call, call))[2]
		if strings.Contains(got, secret) != want {
			t.Errorf("redact %t: %s", redact, got)
		}
	}
}
