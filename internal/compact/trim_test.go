package compact

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

func TestTrim(t *testing.T) {
	t.Parallel()
	noBookends := func(p *policy.Policy) { p.Trim.DegradationSpanRatio = 0 }
	checkStage(t, "trim", map[string]stageCase{
		"the hot zone stays whole, bookends shrink, then one line stays": {
			change: func(p *policy.Policy) { p.Trim.HotZoneMinTokens, p.Trim.DegradationSpanRatio = 300, 0.5 }, window: 1800,
			moves: []move{
				gives("Read", "a", 2400), gives("Read", "b", 2400), gives("Read", "c", 2400), gives("Read", "d", 2400), gives("Read", "e", 1200),
			}, want: []string{"2.0 placeholder", "4.0 bookend", "6.0 bookend"},
		},
		"an ephemeral result is cleared where another gets a placeholder": {
			change: noBookends, window: 1000, moves: []move{gives("SubAgent", "a", 2000), gives("Read", "a", 2000), says("done")},
			want: []string{"2.0 clear", "4.0 placeholder"},
		},
		"the tenant's own categories count": {
			change: func(p *policy.Policy) {
				p.Trim.DegradationSpanRatio, p.Trim.Categories = 0, map[string]policy.Category{"Read": policy.Ephemeral}
			}, window: 1000, moves: []move{gives("SubAgent", "a", 2000), gives("Read", "a", 2000), says("done")}, want: []string{"2.0 placeholder", "4.0 clear"},
		},
		"a non-reproducible result stays longer if the policy says so": {
			change: func(p *policy.Policy) {
				p.Trim.HotZoneMinTokens, p.Trim.DegradationSpanRatio, p.Trim.ExtendedRetentionMultiplier = 150, 0, 4
			}, window: 1000, moves: []move{gives("Read", "a", 2000), gives("Bash", "a", 2000), gives("Read", "b", 1000), says("done")},
			want: []string{"2.0 placeholder"},
		},
		"the hot zone may be a share of the window": {
			change: func(p *policy.Policy) { p.Trim.HotZoneRatio, p.Trim.DegradationSpanRatio = 0.25, 0 }, window: 1000,
			moves: []move{gives("Read", "a", 2000), gives("Read", "b", 1200), gives("Read", "c", 1000)}, want: []string{"2.0 placeholder"},
		},
		"the hot zone is never more than half of the target": {
			change: func(p *policy.Policy) { p.Trim.HotZoneMinTokens, p.Trim.DegradationSpanRatio = 16_000, 0 }, window: 1000,
			moves: []move{gives("Read", "a", 2000), gives("Read", "b", 2000)}, want: []string{"2.0 placeholder"},
		},
		"a view below the floor is not trimmed": {
			change: func(p *policy.Policy) { p.Target, p.Trim.FloorRatio = 0.1, 0.8 }, window: 1000,
			moves: []move{gives("Read", "a", 2000), gives("Read", "b", 2000)}, idle: true,
		},
		"a small result stays": {
			change: func(p *policy.Policy) { p.Trim.DegradationSpanRatio, p.Trim.MinTokens = 0, 200 }, window: 500,
			moves: []move{gives("Read", "a", 1200), gives("Read", "b", 1400), says("done")}, want: []string{"4.0 placeholder"},
		},
		"a result with a picture becomes one line where text would keep bookends, not before": {
			change: func(p *policy.Policy) { p.Trim.DegradationSpanRatio = 0.6 }, window: 2000,
			moves: []move{shows("a", 8000), shows("b", 4000), says("done")}, want: []string{"2.0 placeholder"},
		},
	})
}

// TestBookendsAreOfFewSizes: one that lost a few characters at every compaction would break the provider's cache of all
// that comes after it.
func TestBookendsAreOfFewSizes(t *testing.T) {
	t.Parallel()
	moves := make([]move, 40)
	for i := range moves {
		moves[i] = gives("Read", fmt.Sprint(i), 2000)
	}
	const difference, shortest = 32, 128 // as docs/compatibility.md says
	for steps, maxSizes := range map[int]int{8: 9, 0: 40} {
		p := only("trim", func(p *policy.Policy) {
			p.Trim.DegradationSpanRatio, p.Trim.BookendSizes, p.Trim.BookendMinChars = 1, steps, 0
		})
		var sizes []int
		for _, text := range current(t, input(t, session.OpenAIChat, p, 8000, moves...)) {
			if head, _, cut := strings.Cut(text, "\n\n[... trimmed"); cut && !slices.Contains(sizes, len(head)) {
				sizes = append(sizes, len(head))
			}
		}
		slices.Sort(sizes)
		if len(sizes) < 3 || len(sizes) > maxSizes || sizes[0] < shortest {
			t.Errorf("bookends of %d sizes: %v", len(sizes), sizes)
		}
		for i := range sizes[1:] {
			if sizes[i+1]-sizes[i] < difference {
				t.Errorf("a bookend may shrink by %d characters", sizes[i+1]-sizes[i])
			}
		}
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	checkStage(t, "budget", map[string]stageCase{
		"the oldest results become placeholders until the others fit": {
			window: 600, moves: []move{gives("Read", "a", 800), gives("Read", "b", 800), gives("Read", "c", 800)}, want: []string{"2.0 placeholder"},
		},
		"results within the budget stay": {
			window: 400, moves: []move{gives("Read", "a", 800), gives("Read", "b", 800)},
		},
		"the budget may be a share of the window": {
			change: func(p *policy.Policy) { p.Budget = policy.Budget{Enabled: true, Ratio: 0.35, Max: 10_000} }, window: 800,
			moves: []move{gives("Read", "a", 1200), gives("Read", "b", 1200), gives("Read", "c", 1200)}, want: []string{"2.0 placeholder", "4.0 placeholder"},
		},
		"a result that is cut counts as the view has it": {
			change: func(p *policy.Policy) {
				p.Cap.Enabled, p.Cap.AtInsertion, p.Cap.MaxTokens, p.Cap.HeadChars, p.Cap.TailChars = true, true, 120, 200, 200
			},
			window: 800, moves: []move{gives("Read", "a", 400), gives("Read", "b", 20_000)}, want: []string{"4.0 cap"},
		},
		"so does one that is whole until a request has had it": {
			change: func(p *policy.Policy) {
				p.Cap.Enabled, p.Cap.MaxTokens, p.Cap.HeadChars, p.Cap.TailChars, p.Protect.Yields = true, 120, 200, 200, true
			},
			window: 20_000, moves: []move{gives("Read", "a", 400), gives("Read", "b", 20_000)},
		},
		"such a share has a least": {
			change: func(p *policy.Policy) { p.Budget = policy.Budget{Enabled: true, Ratio: 0.25, Min: 500, Max: 10_000} }, window: 800,
			moves: []move{gives("Read", "a", 1200), gives("Read", "b", 1200), gives("Read", "c", 1200)}, want: []string{"2.0 placeholder"},
		},
		"and a most": {
			change: func(p *policy.Policy) { p.Budget = policy.Budget{Enabled: true, Ratio: 1, Max: 300} }, window: 800,
			moves: []move{gives("Read", "a", 1200), gives("Read", "b", 1200), gives("Read", "c", 1200)}, want: []string{"2.0 placeholder", "4.0 placeholder"},
		},
	})
}

func TestWhitespace(t *testing.T) {
	t.Parallel()
	spaced := strings.Repeat("a  \n\t  b", 300)
	checkStage(t, "whitespace", map[string]stageCase{
		"runs of white space are collapsed": {
			window: 500, moves: []move{returns("Read", "a", spaced)}, want: []string{"2.0 squeeze"},
		},
		"there is nothing to collapse": {
			window: 500, moves: []move{gives("Read", "a", 3000)},
		},
		"a small result stays": {
			change: func(p *policy.Policy) { p.Whitespace.MinTokens = 1000 }, window: 500, moves: []move{returns("Read", "a", spaced)},
		},
		"protected results stay": {
			change: func(p *policy.Policy) { p.Protect.LastUnits = 1 }, window: 1000, moves: []move{returns("Read", "a", spaced), returns("Read", "b", spaced)},
			want: []string{"2.0 squeeze"},
		},
		"a result with a picture stays": {
			window: 200, moves: []move{shows("a", 2000)},
		},
	})
	in := input(t, session.OpenAIChat, only("whitespace", nil), 500, returns("Read", "a", spaced))
	if want, got := strings.Repeat("a b", 300), current(t, in)[2]; got != want {
		t.Errorf("got %s", got)
	}
}

// TestBookendsOfCollapsedText: what was collapsed stays collapsed in its bookends, whichever way it came there.
func TestBookendsOfCollapsedText(t *testing.T) {
	t.Parallel()
	p := only("whitespace", func(p *policy.Policy) {
		p.Trim.Enabled, p.Trim.DegradationSpanRatio, p.Trim.HotZoneMinTokens = true, 10, 200
		p.Wording.Bookend = "|"
	})
	whole := input(t, session.OpenAIChat, p, 500, returns("Read", "a", strings.Repeat("word  \n", 400)), says(filler(2000)))
	first := whole
	first.Tail = whole.Tail[:2]
	_, base := compacted(t, first)
	next := whole
	next.Base, next.Tail = base, whole.Tail[2:]
	if plan, _ := compacted(t, first); cmp.Diff([]string{"2.0 squeeze"}, outcomes(plan)) != "" {
		t.Fatalf("got %v", outcomes(plan))
	}
	got, stepwise := current(t, whole)[2], current(t, next)[2]
	if head, tail, cut := strings.Cut(got, "|"); !cut || strings.Contains(got, "  ") || len(head) > 400 || len(tail) > 400 {
		t.Errorf("got %s", got)
	}
	if got != stepwise {
		t.Errorf("at once %s\nstep by step %s", got, stepwise)
	}
}
