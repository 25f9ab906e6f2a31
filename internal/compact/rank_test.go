package compact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// TestRank has a case for each rule of the ranking: of two results of which one must leave, which does.
func TestRank(t *testing.T) {
	t.Parallel()
	later := says(filler(6000)) // 1,000 tokens, so that what came before is about as old
	checkStage(t, "rank", map[string]stageCase{
		"the older of equal results leaves first": {
			window: 900, moves: []move{gives("Read", "a", 1500), gives("Read", "b", 1500)}, want: []string{"2.0 placeholder"},
		},
		"age counts times size: a large result leaves before a smaller one that is a little older": {
			window: 2600, moves: []move{gives("Read", "a", 900), gives("Read", "b", 1800), later}, want: []string{"4.0 placeholder"},
		},
		"without a weight of the size the older one leaves": {
			change: func(p *policy.Policy) { p.Rank.SizeWeight = 0 }, window: 2600,
			moves: []move{gives("Read", "a", 900), gives("Read", "b", 1800), later}, want: []string{"2.0 placeholder"},
		},
		"an ephemeral result leaves before others, and without a trace of its content": {
			window: 2600, moves: []move{gives("Read", "a", 1500), gives("SubAgent", "b", 1500), later}, want: []string{"4.0 clear"},
		},
		"what cannot be had again stays longer": {
			window: 2600, moves: []move{gives("Bash", "a", 1500), gives("Read", "b", 1500), later}, want: []string{"4.0 placeholder"},
		},
		"a superseded result leaves before others": {
			window: 2900, moves: []move{gives("Read", "b", 1500), gives("Read", "a", 1500), gives("Read", "a", 600), later}, want: []string{"4.0 stub"},
		},
		"a result that is out of date leaves before others": {
			window: 2700, moves: []move{gives("Read", "b", 1500), gives("Read", "a", 1500), gives("Write", "a", 60), later}, want: []string{"4.0 stale"},
		},
		"a failure leaves before a success": {
			window: 2600, moves: []move{gives("Read", "a", 1500), calls("c", "Read", `{"path":"b"}`), fails("c", literal("Error: none\n"+filler(1500))), later}, want: []string{"4.0 placeholder"},
		},
		"a file that a later call names is as young as that call": {
			window: 2700, moves: []move{
				gives("Read", "a", 1500), gives("Read", "b", 1500), says(filler(3000)), calls("x", "Read", `{"path":"a","offset":90}`), answered("x", literal(filler(60))), says(filler(3000)),
			}, want: []string{"4.0 placeholder"},
		},
		"what was asked for before the user spoke last leaves sooner": {
			window: 2700, moves: []move{gives("Read", "a", 1500), asks("next"), gives("Read", "b", 2300), later}, want: []string{"2.0 placeholder"},
		},
		"large arguments leave later than results": {
			window: 2700, moves: []move{
				calls("w", "Write", `{"path":"x","content":`+literal(filler(1500))+`}`), answered("w", `"ok"`), gives("Read", "b", 1500), later,
			}, want: []string{"4.0 placeholder"},
		},
		"large arguments leave if that is not enough": {
			window: 1100, moves: []move{calls("w", "Write", `{"path":"x","content":`+literal(filler(4500))+`}`), answered("w", `"ok"`), says("done")},
			want: []string{"1.0 omit"},
		},
		"arguments stay if the policy says so": {
			change: func(p *policy.Policy) { p.Rank.ArgumentBytes = 0 }, window: 1100,
			moves: []move{calls("w", "Write", `{"path":"x","content":`+literal(filler(4500))+`}`), answered("w", `"ok"`), says("done")},
		},
		"a small result stays": {
			change: func(p *policy.Policy) { p.Rank.MinTokens = 200 }, window: 700,
			moves: []move{gives("Read", "a", 900), gives("Read", "b", 1500), says("done")}, want: []string{"4.0 placeholder"},
		},
		"what is protected stays": {
			change: func(p *policy.Policy) { p.Protect.LastUnits = 2 }, window: 700, moves: []move{gives("Read", "a", 1500), gives("Read", "b", 3000), says("done")},
			want: []string{"2.0 placeholder"},
		},
		"a large result that is recent keeps head and tail first": {
			change: func(p *policy.Policy) { p.Rank.BookendChars = 300 }, window: 1600, moves: []move{gives("Read", "a", 5400), says("done")}, want: []string{"2.0 bookend"},
		},
		"a line replaces head and tail if they are still too much": {
			change: func(p *policy.Policy) { p.Rank.BookendChars = 600 }, window: 300, moves: []move{gives("Read", "a", 5400), says("done")},
			want: []string{"2.0 placeholder"},
		},
		"no more leaves than is needed": {
			window: 1500, moves: []move{gives("Read", "a", 1200), gives("Read", "b", 1200), gives("Read", "c", 1200), gives("Read", "d", 1200), says("done")},
			want: []string{"2.0 placeholder"},
		},
	})
}

// TestUnitsBesideResults: how much the oldest units are worth beside newer results is the policy's to say.
func TestUnitsBesideResults(t *testing.T) {
	t.Parallel()
	moves := []move{gives("Read", "small", 240), says("I see it."), gives("Read", "a", 1500), says("Good."), gives("Read", "b", 6000), says("done")}
	for weight, want := range map[float64]ActionKind{0: Summarise, 1000: Placeholder} {
		p := only("rank", func(p *policy.Policy) {
			p.Rank.UnitWeight, p.Summarise.Enabled, p.Summarise.All, p.Summarise.MaxTokens = weight, true, false, 100
		})
		plan, _ := compacted(t, input(t, session.Anthropic, p, 2400, moves...))
		if len(plan.Actions) == 0 || plan.Actions[0].Kind != want {
			t.Errorf("with a weight of %v: %v, want %s", weight, outcomes(plan), want)
		}
	}
}

// TestALineHasOutcomeAndNames: of a result that was ranked, the line tells what became of the call and names what was
// in the whole of it, also if only head and tail were left of it before.
func TestALineHasOutcomeAndNames(t *testing.T) {
	t.Parallel()
	middle := filler(3000) + "\nsee internal/store/parseRef.go and HandlerFunc\n" + filler(3000)
	p := only("rank", func(p *policy.Policy) { p.Rank.BookendChars = 300 })
	for name, c := range map[string]struct {
		tool, text string
		want       []string
	}{
		"a read":             {"Read", middle, []string{"Read: 3 lines, ~", " tokens: store/parseRef.go HandlerFunc -- in full: read_result r2.0-"}},
		"a failure":          {"Bash", "Exit code: 2\nmake: cannot find file x\n" + middle, []string{"failed, 5 lines", `, "make: cannot find file x"`}},
		"a command's end":    {"Bash", middle + "\nok 12 passed\n---\n", []string{`tokens, "ok 12 passed"`}},
		"a secret is masked": {"Bash", middle + "\ntoken ghp_0123456789abcdefghijABCDEFGHIJ012345\n", []string{"***"}},
	} {
		for _, f := range written {
			answer := answered
			if name == "a failure" {
				answer = fails // Anthropic's format has a flag for it
			}
			in := input(t, f, p, 1500, calls("c", c.tool, `{"path":"a"}`), answer("c", literal(c.text)), says("done"))
			plan, made := compacted(t, in)
			if got := outcomes(plan); len(got) != 1 || got[0] != "2.0 bookend" {
				t.Fatalf("%s: %v", name, got)
			}
			in.Base, in.Tail = made, entriesAfter(t, in, says(filler(7000)))
			_, made = compacted(t, in)
			line := string(said(show(t, f, made)[1], &show(t, f, made)[1].parts[0]))
			for _, want := range c.want {
				if !strings.Contains(line, want) || strings.Contains(line, "ghp_0123456789abc") {
					t.Errorf("%s in %s: the line lacks %q: %s", name, f, want, line)
				}
			}
		}
	}
}

// entriesAfter returns moves as what comes after all of an input.
func entriesAfter(t *testing.T, in Input, moves ...move) []Entry {
	t.Helper()
	more := input(t, in.Format, in.Policy, in.WindowTokens, moves...).Tail
	for i := range more {
		more[i].Seq += in.Tail[len(in.Tail)-1].Seq
	}
	return more
}

// TestNamesAreNoMoreThanThePolicyWants also shows that none need be.
func TestNamesAreNoMoreThanThePolicyWants(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "handleRequest%d\n", i)
	}
	for _, chars := range []int{0, 40, 400} {
		p := only("rank", func(p *policy.Policy) { p.Rank.NamesChars = chars })
		line := current(t, input(t, session.OpenAIChat, p, 900, returns("Read", "a", text.String()), says("done")))[2]
		_, names, found := strings.Cut(line, " tokens: ")
		names, _, _ = strings.Cut(names, " -- ")
		if found != (chars > 0) || len(names) > chars || len(names) < chars-20 {
			t.Errorf("%d characters of names: %s", chars, line)
		}
	}
}
