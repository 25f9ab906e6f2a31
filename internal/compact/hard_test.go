package compact

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// code returns about as many tokens of a program.
func code(tokens int) string {
	var b strings.Builder
	for i := 0; b.Len() < 4*tokens; i++ {
		fmt.Fprintf(&b, "func handle%d(w io.Writer, n int) error { return write(w, n+%d) }\n", i, i)
	}
	return b.String()
}

// parallel returns an assistant's message that reads n files, each of a number of tokens, and the results.
func parallel(n, tokens int) move {
	return func(session.Format) []string {
		var calls, results []string
		for i := range n {
			id := fmt.Sprintf("p%d-%d", tokens, i)
			calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"Read","arguments":"{\"path\":\"f%d.go\"}"}}`, id, i))
			results = append(results, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, literal(code(tokens))))
		}
		return append([]string{`{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`}, results...)
	}
}

// translated returns moves as a session of any format.
func translated(t testing.TB, f session.Format, p policy.Policy, window int, moves ...move) Input {
	t.Helper()
	var log logged
	for _, body := range then(moves...)(session.OpenAIChat) {
		log = append(log, wire.Stored{Format: session.OpenAIChat, Body: []byte(body), Seq: int64(len(log) + 1)})
	}
	in := Input{Format: f, Policy: p, WindowTokens: window}
	for _, e := range log.entries(t, f, 0, int64(len(log))) {
		if f == session.AISDK && e.Part == 0 {
			in.Tail = append(in.Tail, Divide(f, e)...)
			continue
		}
		in.Tail = append(in.Tail, e)
	}
	return in
}

func TestNothingOutranksTheWindow(t *testing.T) {
	t.Parallel()
	small := then(asks("go on"), gives("Read", "a", 1200), says("done"))
	for name, c := range map[string]struct {
		window int
		moves  []move
		keeps  float64 // share of the window that stays: no more is cut than needed
		change func(*policy.Policy)
		want   string // what the view must contain
	}{
		"ten parallel reads of 8k in 32k":   {32_000, []move{small, asks("read"), parallel(10, 8000)}, 0.4, nil, "read_result r"},
		"ten parallel reads of 16k in 128k": {128_000, []move{small, asks("read"), parallel(10, 16_000)}, 0.4, nil, "read_result r"},
		"four units of three reads in 32k": {
			32_000, []move{asks("read"), parallel(3, 3000), parallel(3, 3001), parallel(3, 3002), parallel(3, 3003)}, 0.5, nil, "read_result r",
		},
		"a giant result in a window that it alone exceeds": {16_000, []move{small, asks("read"), parallel(1, 24_000)}, 0.1, nil, "read_result r"},
		"a thousand small results":                         {16_000, []move{small, asks("read"), parallel(1000, 40)}, 0.0, nil, "read_result"},
		"a giant argument": {
			16_000, []move{small, calls("w", "Write", `{"path":"x.go","content":`+literal(code(20_000))+`}`), answered("w", `"ok"`)}, 0.0, nil, "_omitted",
		},
		"a giant text of the user": {16_000, []move{small, asks(code(40_000))}, 0.3, nil, "read_result m5"},
		"a giant text of the user, then work": {
			16_000, []move{small, asks(code(40_000)), parallel(2, 2000), says("read")}, 0.3, nil, "read_result m5",
		},
		"a giant text of the assistant": {16_000, []move{small, asks("write"), says(code(40_000)), asks("thanks")}, 0.1, nil, "read_result m"},
		"listed tools":                  {32_000, []move{small, asks("read"), parallel(10, 8000)}, 0.0, func(p *policy.Policy) { p.Protect.Tools = []string{"Read"} }, "read_result r"},
		"all turns protected": {
			32_000, []move{asks("read"), parallel(3, 7000), asks("read"), parallel(3, 7001), asks("read"), parallel(3, 7002)}, 0.4,
			func(p *policy.Policy) { p.Protect.LastTurns, p.Protect.MaxTurnRatio, p.Cap.Enabled = 9, 1, false }, "read_result r",
		},
		"no cap": {
			32_000, []move{small, asks("read"), parallel(10, 8000)}, 0.5, func(p *policy.Policy) { p.Cap.Enabled = false }, "read_result r",
		},
	} {
		for _, f := range session.Formats() {
			t.Run(fmt.Sprintf("%s in %s", name, f), func(t *testing.T) {
				t.Parallel()
				p := policy.Default()
				if c.change != nil {
					c.change(&p)
				}
				checkBelowHard(t, translated(t, f, p, c.window, c.moves...), c.keeps, c.want)
			})
		}
	}
}

// checkBelowHard wants a compaction to bring the view below its hard limit and to keep a share of the window, to
// contain a text, and to have nothing left to do afterwards.
func checkBelowHard(t *testing.T, in Input, share float64, text string) {
	t.Helper()
	plan, made := compacted(t, in)
	limit := in.Policy.Hard * float64(in.WindowTokens)
	if after := float64(plan.After); after > limit || after < share*float64(in.WindowTokens) {
		t.Errorf("the view has %.0f tokens of %d", after, in.WindowTokens)
	}
	if !strings.Contains(string(made.Body), text) {
		t.Errorf("the view lacks %q", text)
	}
	in.Base, in.Tail = made, in.Tail[len(in.Tail):]
	if again, _ := compacted(t, in); again.Changed() {
		t.Errorf("the next compaction does %v", outcomes(again))
	}
}

// TestTheNewestResultIsCutLeast: of results that protection keeps, those of older units are cut to less, and what no
// request has had yet is not cut while that is enough.
func TestTheNewestResultIsCutLeast(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	p.Cap.Enabled = false
	plan, _ := compacted(t, translated(t, session.Anthropic, p, 32_000, asks("read"), parallel(1, 14_000), parallel(1, 14_001), parallel(1, 14_002)))
	var left []int
	for _, a := range plan.Actions {
		left = append(left, a.TokensAfter)
	}
	if len(left) != 2 || !slices.IsSorted(left) || 4*left[0] > 3*left[1] {
		t.Errorf("the results keep %v tokens, the oldest first", left)
	}
}

// TestProtectionHoldsBelowTheHardLimit: a view that the stages bring below it keeps what the policy protects.
func TestProtectionHoldsBelowTheHardLimit(t *testing.T) {
	t.Parallel()
	plan, _ := compacted(t, translated(t, session.Anthropic, policy.Default(), 32_000, gives("Read", "old", 90_000), asks("read"), parallel(2, 4000)))
	if got := outcomes(plan); slices.ContainsFunc(got, func(outcome string) bool {
		return !strings.HasPrefix(outcome, "2.0") && !strings.HasPrefix(outcome, "1-2")
	}) || len(got) == 0 {
		t.Errorf("protected parts have changed: %v", got)
	}
	off := policy.Default()
	off.Protect.Yields, off.Cap.Enabled = false, false
	if plan, _ := compacted(t, translated(t, session.Anthropic, off, 32_000, asks("read"), parallel(10, 8000))); plan.Changed() {
		t.Errorf("protection has yielded: %v", outcomes(plan))
	}
}
