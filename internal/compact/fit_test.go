package compact

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// enough is the share of its target that a view has at least after a compaction, if anything can fill it.
const enough = 0.6

func TestACompactionTakesNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	questions := then(says("done"), asks("thanks, and what is a?"), says("a is fine"), asks("thanks, and what is b?"), says("b is fine"))
	for name, c := range map[string]struct {
		window int
		moves  []move
	}{
		"three large results and two questions": {
			40_000, []move{asks("task"), returns("Read", "a", code(7000)), returns("Read", "b", code(7000)), returns("Read", "c", code(7000)), questions},
		},
		"one result that is nearly all":      {20_000, []move{asks("task"), returns("Bash", "a", code(14_000)), questions}},
		"three results at once":              {40_000, []move{asks("task"), parallel(3, 7000), questions}},
		"a large result before small ones":   {24_000, []move{asks("task"), returns("Read", "a", code(9000)), parallel(20, 100), questions}},
		"a large system message before them": {32_000, []move{word("system", code(11_000)), asks("task"), returns("Read", "a", code(5000)), returns("Read", "b", code(5000)), returns("Read", "c", code(5000)), questions}},
	} {
		for _, f := range session.Formats() {
			t.Run(fmt.Sprintf("%s in %s", name, f), func(t *testing.T) {
				t.Parallel()
				plan, made := compacted(t, translated(t, f, policy.Default(), c.window, c.moves...))
				target := plan.state.target
				if after := float64(plan.After); after > target || after < enough*target {
					t.Errorf("the view went from %d to %d tokens, the target is %.0f\n%.3000s", plan.Before, plan.After, target, made.Body)
				}
			})
		}
	}
}

// TestNoViewIsFarBelowItsTarget holds the default policy to the same over random histories, compacted as they grow.
func TestNoViewIsFarBelowItsTarget(t *testing.T) {
	t.Parallel()
	compactions := 0
	for seed := range uint64(*histories) / 40 {
		rng := rand.New(rand.NewPCG(seed, 7))
		f := session.Formats()[rng.IntN(len(session.Formats()))]
		in := Input{Format: f, Policy: policy.Default(), WindowTokens: 4000 + rng.IntN(12_000)}
		options := compacttest.Options{Messages: 150, ResultTokens: []int{50, 400, 1500}[rng.IntN(3)]}
		size := 0
		for i, body := range compacttest.Session(rng, f, options) {
			found, err := wire.Inspect(f, body)
			if err != nil {
				t.Fatal(err)
			}
			in.Tail = append(in.Tail, Divide(f, Entry{Seq: int64(i + 1), Tokens: found.Tokens, Body: body})...)
			if size += found.Tokens; float64(size) < in.Policy.Trigger*float64(in.WindowTokens) {
				continue
			}
			plan, made := compacted(t, in)
			after, target := float64(plan.After), plan.state.target
			if compactions++; after < enough*target && plan.state.superfluous() < int(target-after) {
				t.Fatalf("seed %d in %s, window %d, message %d: the view went from %d to %d tokens, the target is %.0f: %v",
					seed, f, in.WindowTokens, i+1, plan.Before, plan.After, target, outcomes(plan))
			}
			in.Base, in.Tail, size = made, in.after(made), int(plan.After)
		}
	}
	if compactions < *histories/20 {
		t.Errorf("%d compactions: the histories test little", compactions)
	}
}

// superfluous returns how many tokens have left the view because a newer result says the same, or in one piece because
// they cannot be cut.
func (s *runState) superfluous() (tokens int) {
	for i := range s.parts {
		if p := &s.parts[i]; p.action == Stub || p.action == Omit || p.action.isLine() && !p.onlyText {
			tokens += p.tokens - p.now
		}
	}
	if d := s.eviction; d != nil {
		last := s.lastUnitBefore(d.end)
		for m := last; m < d.end; m++ {
			tokens += s.messages[m].tokens
			for i := s.messages[m].first; i < s.messages[m].last; i++ {
				if p := &s.parts[i]; p.kind == result && s.free[i] && p.action == Keep && s.content(i).OnlyText && p.tokens > leastCut {
					tokens -= max(p.tokens-leastCut-2*markerTokens, 0)
				}
			}
		}
	}
	return tokens
}

// after returns the entries that a checkpoint does not cover.
func (in *Input) after(made *Checkpoint) (rest []Entry) {
	for _, e := range in.Tail {
		if e.Seq > made.Through {
			rest = append(rest, e)
		}
	}
	return rest
}

func TestNothingIsCutBeforeItWasSeen(t *testing.T) {
	t.Parallel()
	old := then(asks("task"), parallel(1, 3001), parallel(1, 3002), parallel(1, 3003), says("so far"), parallel(1, 3004))
	for name, c := range map[string]struct {
		window int
		newest move
		cut    bool
	}{
		"a result over the cap":             {24_000, parallel(1, 9000), false},
		"several results that are too many": {24_000, parallel(3, 3500), false},
		"a result that the window forces":   {16_000, parallel(1, 18_000), true},
	} {
		for _, f := range session.Formats() {
			t.Run(fmt.Sprintf("%s in %s", name, f), func(t *testing.T) {
				t.Parallel()
				in := translated(t, f, policy.Default(), c.window, old, c.newest)
				plan, _ := compacted(t, in)
				cut := 0
				for i := range plan.state.parts {
					p := &plan.state.parts[i]
					if p.action != Keep && plan.state.unseen(p.message) {
						cut++
					}
				}
				if limit := in.Policy.Hard * float64(c.window); cut > 0 != c.cut || float64(plan.After) > limit {
					t.Errorf("%d results were cut; the view went from %d to %d tokens of %d", cut, plan.Before, plan.After, c.window)
				} else if c.cut && float64(plan.After) < 0.8*limit {
					t.Errorf("the view has %d tokens where the window allows %.0f", plan.After, limit)
				}
			})
		}
	}
}

// TestACutCountsByWhatItLeaves has results at the end of what a summary would be of that are cut instead where that is
// enough: of a text of characters that are a token each a cut leaves more than of others, and media cannot be cut.
func TestACutCountsByWhatItLeaves(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	p.Trim.Enabled, p.Cap.Enabled, p.Protect.LastUnits, p.Summarise.KeepTurns, p.Summarise.KeepMessages = true, false, 0, 0, 0
	block := `{"type":"text","text":` + literal(filler(60_000)) + `}`
	for name, c := range map[string]struct {
		content string
		cuts    bool
	}{
		"a text in words": {literal(filler(60_000)), true},
		"a dense text":    {literal(strings.Repeat("検索結果", 4500)), true},
		"a text beside an image": {
			`[` + block + `,{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, _ := compacted(t, input(t, session.Anthropic, p, 16_000,
				asks("task"), says("a plan"), calls("a", "Read", `{"path":"a"}`), answered("a", c.content), says("done"), asks("and now?")))
			if target := plan.state.target; float64(plan.After) > target {
				t.Errorf("the view went from %d to %d tokens, the target is %.0f: %v", plan.Before, plan.After, target, outcomes(plan))
			}
			if cut := slices.ContainsFunc(plan.Actions, func(a Action) bool { return a.Part >= 0 }); cut != c.cuts {
				t.Errorf("the result is cut: %t: %v", cut, outcomes(plan))
			}
		})
	}
}
