package compact

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestLawsHoldWithEarlyResults puts histories through the engine in which results stand before their calls, and wants
// both in a view, or none.
func TestLawsHoldWithEarlyResults(t *testing.T) {
	t.Parallel()
	moved, shown, gone := 0, 0, 0
	for seed := range uint64(*histories) / 8 {
		rng := rand.New(rand.NewPCG(seed, 2))
		l := newTrial(t, rng)
		early := l.early(rng)
		all := len(early)
		l.whole = l.compact(l.in)
		l.walk(rng)
		l.other = l.compact(l.next(l.whole.made, randomPolicy(rng)))
		for _, holds := range laws {
			holds(l)
		}
		moved += all
		for _, chain := range l.chains() {
			for _, o := range chain {
				s, g := l.earlyStay(o, early)
				shown, gone = shown+s, gone+g
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s, window %d, policy %s", seed, l.in.Format, l.in.WindowTokens, l.in.Policy.Document())
		}
	}
	t.Logf("%d results before their calls, %d times in a view, %d times gone with their calls", moved, shown, gone)
	if shown < *histories/40 || gone < *histories/400 {
		t.Errorf("%d results before their calls are in a view, %d have left: the histories test little", shown, gone)
	}
}

// early swaps calls with their results where nothing else of their ids is in the history, and returns these ids with the
// numbers of the messages that then have the results.
func (l *trial) early(rng *rand.Rand) map[string]int {
	swapped := map[string]int{}
	if l.in.Format == session.AISDK {
		return swapped
	}
	for i := 1; i < len(l.in.Tail); i++ {
		call, result := &l.originals[i-1], &l.originals[i]
		if len(result.Parts) != 1 || result.Parts[0].Kind != wire.Result || rng.IntN(2) == 0 {
			continue
		}
		id := result.Parts[0].CallID
		isCall := func(p wire.Part) bool { return p.Kind == wire.Call && p.CallID == id }
		if !slices.ContainsFunc(call.Parts, isCall) || l.uses(id) != 2 {
			continue
		}
		a, b := &l.in.Tail[i-1], &l.in.Tail[i]
		a.Body, b.Body = b.Body, a.Body
		a.Tokens, b.Tokens = b.Tokens, a.Tokens
		*call, *result = *result, *call
		swapped[id] = i - 1
		i++ // the call stays where it is
	}
	return swapped
}

// uses counts the calls and results of an id.
func (l *trial) uses(id string) (n int) {
	for i := range l.originals {
		for _, p := range l.originals[i].Parts {
			if (p.Kind == wire.Call || p.Kind == wire.Result) && p.CallID == id {
				n++
			}
		}
	}
	return n
}

// earlyStay wants a view to have both an early result and its call, next to each other, or none.
func (l *trial) earlyStay(o outcome, early map[string]int) (shown, gone int) {
	l.Helper()
	var view []wire.Stored
	for _, m := range o.view {
		view = append(view, wire.Stored{Format: l.in.Format, Body: m.body, Seq: m.seq})
	}
	made := wiretest.Render(l.in.Format, view, wire.Options{})
	for id, place := range early {
		switch through := l.count(o.made.Through); {
		case through == place+1:
			delete(early, id) // it may leave before its call comes
			continue
		case through <= place:
			continue
		}
		there := 0
		for _, m := range o.view {
			there += strings.Count(string(m.body), `"`+id+`"`)
		}
		orphan := func(r wire.Repair) bool {
			return (r.Kind == "orphan_result" || r.Kind == "result_synthesized") && strings.Contains(r.Detail, `"`+id+`"`)
		}
		switch {
		case slices.ContainsFunc(made.Repairs, orphan):
			l.Errorf("result %s is not with its call: %v", id, made.Repairs)
		case there > 0:
			shown++
		default:
			gone++
		}
	}
	return shown, gone
}
