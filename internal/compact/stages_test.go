package compact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// The tests of the stages are tables over conversations that are made of moves, each of a message or two. A move is the
// same in every format, so every table is run in each.

// written are the formats that moves can write. What the engine does in the others, random histories show.
var written = []session.Format{session.OpenAIChat, session.Anthropic}

// move writes its messages in a format.
type move func(f session.Format) []string

// asks returns a message of the user, says one of the assistant.
func asks(text string) move { return word("user", text) }
func says(text string) move { return word("assistant", text) }

func word(role, text string) move {
	return func(session.Format) []string {
		return []string{fmt.Sprintf(`{"role":%q,"content":%s}`, role, literal(text))}
	}
}

// calls returns a call of a tool with its arguments as JSON.
func calls(id, tool, arguments string) move {
	return func(f session.Format) []string {
		if f == session.OpenAIChat {
			const body = `{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`
			return []string{fmt.Sprintf(body, id, tool, literal(arguments))}
		}
		return []string{fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, id, tool, arguments)}
	}
}

// answered returns a result with its content as JSON; fails returns one of a tool that failed, which only Anthropic's
// format can express.
func answered(id, content string) move { return resultOf(id, content, "") }
func fails(id, content string) move    { return resultOf(id, content, `,"is_error":true`) }

func resultOf(id, content, more string) move {
	return func(f session.Format) []string {
		if f == session.OpenAIChat {
			return []string{fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, content)}
		}
		return []string{fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s%s}]}`, id, content, more)}
	}
}

// then returns one move after another.
func then(moves ...move) move {
	return func(f session.Format) (bodies []string) {
		for _, s := range moves {
			bodies = append(bodies, s(f)...)
		}
		return bodies
	}
}

// returns returns a call of a tool for a path and its result: message n and n+1.
func returns(tool, path, text string) move {
	return then(calls("c", tool, fmt.Sprintf(`{"path":%q}`, path)), answered("c", literal(text)))
}

// gives returns the same with a result of a number of characters, about a sixth as many tokens.
func gives(tool, path string, chars int) move { return returns(tool, path, filler(chars)) }

func filler(chars int) string { return strings.Repeat("abcdefghi ", chars/10) }

func literal(text string) string { return string(rawjson.Quote(nil, []byte(text))) }

func input(t testing.TB, f session.Format, p policy.Policy, window int, moves ...move) Input {
	t.Helper()
	in := Input{Format: f, Policy: p, WindowTokens: window}
	for _, body := range then(moves...)(f) {
		found, err := wire.Inspect(f, []byte(body))
		if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		in.Tail = append(in.Tail, Entry{Seq: int64(len(in.Tail) + 1), Tokens: found.Tokens, Body: []byte(body)})
	}
	return in
}

// only returns the default policy with one stage, nothing protected, and the measures of a small window.
func only(stage string, change func(*policy.Policy)) policy.Policy {
	p := policy.Default()
	byAge(&p)
	p.Target = 0.5
	p.Protect.LastUnits, p.Protect.NewestUser, p.Protect.Yields = 0, false, false
	p.Cap.Enabled, p.Dedupe.Enabled, p.Arguments.Enabled = stage == "cap", stage == "dedupe", stage == "arguments"
	p.Trim.Enabled, p.Budget.Enabled, p.Whitespace.Enabled = stage == "trim", stage == "budget", stage == "whitespace"
	p.Summarise.Enabled, p.Truncate.Enabled = stage == "summarise", stage == "truncate"
	p.Cap.MaxTokens, p.Cap.HeadChars, p.Cap.TailChars, p.Cap.MaxRatio, p.Cap.UnitRatio = 1000, 500, 500, 0, 0
	p.Trim.HotZoneMinTokens, p.Trim.HotZoneRatio, p.Trim.BookendMaxChars, p.Trim.BookendMinChars, p.Trim.FloorRatio = 0, 0, 400, 200, 0
	p.Arguments.MinBytes, p.Arguments.AfterTokens = 400, 100
	p.Budget.Tokens = 300
	p.Summarise.All, p.Summarise.KeepTurns, p.Summarise.KeepMessages, p.Summarise.MinTokens, p.Summarise.Retain = true, 0, 2, 0, false
	if change != nil {
		change(&p)
	}
	return p
}

// stageCase is a conversation under the policy of one stage, in a window of which the target is half.
type stageCase struct {
	change func(*policy.Policy)
	window int
	moves  []move
	idle   bool     // the stage is not even entered
	want   []string // "seq.part action", or "first-last action" for whole messages
}

// checkStage runs a table in every format.
func checkStage(t *testing.T, stage string, cases map[string]stageCase) {
	t.Helper()
	for _, f := range written {
		for name, c := range cases {
			t.Run(fmt.Sprintf("%s in %s", name, f), func(t *testing.T) {
				t.Parallel()
				plan, made := compacted(t, input(t, f, only(stage, c.change), c.window, c.moves...))
				if diff := cmp.Diff(c.want, outcomes(plan)); diff != "" {
					t.Errorf("actions (-want +got):\n%s%s", diff, made.Body)
				}
				for _, report := range plan.Stages {
					if report.Stage == stage && report.Entered == c.idle {
						t.Errorf("the stage was entered: %t", report.Entered)
					}
				}
				for _, a := range plan.Actions {
					if a.Stage != stage && a.Kind != CollapseSpace && a.Kind != Cap {
						t.Errorf("%s is said to be of the stage %s", a.Kind, a.Stage)
					}
				}
			})
		}
	}
}

func outcomes(p *Plan) (lines []string) {
	for _, a := range p.Actions {
		if a.Part < 0 {
			lines = append(lines, fmt.Sprintf("%d-%d %s", a.Seq, a.LastSeq, a.Kind))
		} else {
			lines = append(lines, fmt.Sprintf("%d.%d %s", a.Seq, a.Part, a.Kind))
		}
	}
	return lines
}

// current returns what the view has after a compaction, by seq: the text of the only part of a message, or all of a
// message that replaces others.
func current(t testing.TB, in Input) map[int64]string {
	t.Helper()
	_, made := compacted(t, in)
	texts := map[int64]string{}
	for _, m := range show(t, in.Format, made) {
		for _, p := range m.found.Parts {
			texts[m.seq] += string(said(m, &part{value: p.Value}))
		}
	}
	return texts
}

func TestCommonRules(t *testing.T) {
	t.Parallel()
	checkStage(t, "cap", map[string]stageCase{
		"no stage is entered while the view is within its target": {
			window: 10_000, moves: []move{gives("Read", "a", 8000)}, idle: true,
		},
		"a listed tool is not even capped": {
			change: func(p *policy.Policy) { p.Protect.Tools = []string{"Read"} }, window: 1000, moves: []move{gives("Read", "a", 8000)},
		},
		"the newest result is capped although it is protected": {
			change: func(p *policy.Policy) { p.Protect.LastUnits = 4 }, window: 1000, moves: []move{gives("Read", "a", 8000)}, want: []string{"2.0 cap"},
		},
		"an orphan is carried as it is": {
			window: 1000, moves: []move{answered("nobody", literal(filler(8000)))},
		},
		"a result waits while other calls of its unit are in flight": {
			window: 1000, moves: []move{
				asks("go"), calls("x", "Read", `{"path":"a"}`), calls("c", "Read", `{"path":"a"}`), answered("d", literal(filler(8000))),
			},
		},
		"the result of an abandoned call is not there, that of another is": {
			window: 1000, moves: []move{calls("x", "Read", `{"path":"a"}`), gives("Read", "b", 8000)}, want: []string{"3.0 cap"},
		},
	})
}

func TestProtection(t *testing.T) {
	t.Parallel()
	// Three turns of two reads each; the results are messages 3, 5, 8, 10, 13 and 15.
	var turns []move
	for i := range 3 {
		turns = append(turns, asks("go on"), gives("Read", fmt.Sprint("a", i), 1200), gives("Read", fmt.Sprint("b", i), 1200))
	}
	lines := func(seqs ...int) (want []string) {
		for _, seq := range seqs {
			want = append(want, fmt.Sprintf("%d.0 placeholder", seq))
		}
		return want
	}
	checkStage(t, "budget", map[string]stageCase{
		"nothing is protected": {
			change: func(p *policy.Policy) { p.Budget.Tokens = 1 }, window: 1000, moves: turns, want: lines(3, 5, 8, 10, 13, 15),
		},
		"the last units stay": {
			change: func(p *policy.Policy) { p.Budget.Tokens, p.Protect.LastUnits = 1, 3 }, window: 1000, moves: turns, want: lines(3, 5, 8, 10),
		},
		"the last messages stay": {
			change: func(p *policy.Policy) { p.Budget.Tokens, p.Protect.LastMessages = 1, 3 }, window: 1000, moves: turns, want: lines(3, 5, 8, 10),
		},
		"the last turn stays": {
			change: func(p *policy.Policy) { p.Budget.Tokens, p.Protect.LastTurns, p.Protect.MaxTurnRatio = 1, 1, 1 }, window: 1000, moves: turns,
			want: lines(3, 5, 8, 10),
		},
		"the last two turns stay": {
			change: func(p *policy.Policy) { p.Budget.Tokens, p.Protect.LastTurns, p.Protect.MaxTurnRatio = 1, 2, 1 }, window: 1000, moves: turns, want: lines(3, 5),
		},
		"of a turn larger than its share of the target only the newest end stays": {
			change: func(p *policy.Policy) { p.Budget.Tokens, p.Protect.LastTurns, p.Protect.MaxTurnRatio = 1, 1, 0.3 }, window: 1000, moves: turns,
			want: lines(3, 5, 8, 10, 13),
		},
		"what is protected is the union": {
			change: func(p *policy.Policy) {
				p.Budget.Tokens, p.Protect.LastTurns, p.Protect.MaxTurnRatio, p.Protect.LastMessages = 1, 1, 1, 8
			}, window: 1000, moves: turns, want: lines(3, 5),
		},
		"a result without a call stays": {
			change: func(p *policy.Policy) { p.Budget.Tokens = 1 }, window: 500,
			moves: []move{answered("c", literal(filler(1200))), gives("Read", "a", 1200), says("done")}, want: lines(3),
		},
		"a listed tool stays": {
			change: func(p *policy.Policy) { p.Budget.Tokens, p.Protect.Tools = 1, []string{"Grep"} }, window: 500,
			moves: []move{gives("Read", "a", 1200), gives("Grep", "a", 1200), says("done")}, want: lines(2),
		},
	})
}
