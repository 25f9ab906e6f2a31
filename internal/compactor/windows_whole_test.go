package compactor

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/policy"
)

func TestACompactionInWindowsMakesWhatOneOfAllMessagesMakes(t *testing.T) {
	t.Parallel()
	several := 0
	for seed := range uint64(12) {
		snap := logged(t, seed, false)
		whole, results := inWindows(t, snap, byAge(), math.MaxInt64)
		for _, size := range []int64{1, 1000, 9000} {
			p, kept := inWindows(t, snap, byAge(), size)
			name := fmt.Sprintf("seed %d, windows of %d bytes", seed, size)
			if p.persisted > 0 {
				several++
			}
			if !bytes.Equal(p.Made.Body, whole.Made.Body) || !reflect.DeepEqual(p.Made.Units, whole.Made.Units) || p.Made.Through != whole.Made.Through {
				t.Fatalf("%s: another rendition, %d and %d bytes", name, len(p.Made.Body), len(whole.Made.Body))
			}
			if got, want := done(p.Plan.Actions), done(whole.Plan.Actions); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the manifest is\n%v\nand not\n%v", name, got, want)
			}
			if p.Plan.Before != whole.Plan.Before || p.Plan.After != whole.Plan.After || p.Changed != whole.Changed || p.taken.bytes != whole.taken.bytes || p.taken.messages != whole.taken.messages || p.taken.tokens != whole.taken.tokens {
				t.Errorf("%s: %+v from %d to %d tokens, and not %+v from %d to %d", name, p.taken, p.Plan.Before, p.Plan.After, whole.taken, whole.Plan.Before, whole.Plan.After)
			}
			if got, want := refsOf(kept), refsOf(results); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: persisted %v, and not %v", name, got, want)
			}
			if got, want := p.Plan.Evaluations(), whole.Plan.Evaluations(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: evaluations %v, and not %v", name, got, want)
			}
		}
	}
	if several < 12 {
		t.Errorf("only %d chains of several windows persist something on the way", several)
	}
}

// Whatever the policy and the windows: the view is valid, which the planner checks, it covers all that can be covered,
// what is no longer whole in it was persisted with its bytes, and the manifest says what was saved.
func TestNothingIsLostBetweenWindows(t *testing.T) {
	t.Parallel()
	evicted := 0
	for seed := range uint64(16) {
		snap := logged(t, seed, seed%2 == 0)
		rule := policy.Default()
		rule.Trigger, rule.Target, rule.Hard = 0.5, 0.3, 0.9
		rule.Summarise.Enabled = seed%3 > 0
		whole, _ := inWindows(t, snap, rule, math.MaxInt64)
		for _, size := range []int64{1, 1000, 9000} {
			p, kept := inWindows(t, snap, rule, size)
			name := fmt.Sprintf("seed %d, windows of %d bytes", seed, size)
			if p.Made.Through != whole.Made.Through {
				t.Errorf("%s: through %d, and not %d", name, p.Made.Through, whole.Made.Through)
			}
			saved := int64(0)
			for _, a := range p.Plan.Actions {
				saved += int64(a.TokensBefore - a.TokensAfter)
				if a.Part < 0 {
					evicted++
				}
			}
			if saved != p.Plan.Before-p.Plan.After || p.Plan.Before != whole.Plan.Before {
				t.Errorf("%s: the manifest saves %d tokens, from %d to %d of %d", name, saved, p.Plan.Before, p.Plan.After, whole.Plan.Before)
			}
			facts, err := compact.ReadState(snap.Format, p.Made)
			if err != nil {
				t.Fatal(err)
			}
			refs := refsOf(kept)
			for _, ref := range facts.Replaced {
				if _, ok := slices.BinarySearch(refs, ref); !ok {
					t.Errorf("%s: %s left the view and was not persisted: %v", name, ref, refs)
				}
			}
			if len(refs) != len(p.Plan.Results) {
				t.Errorf("%s: %d results are persisted, the plan has %d", name, len(refs), len(p.Plan.Results))
			}
			again, _ := inWindows(t, snap, rule, size)
			if !bytes.Equal(again.Made.Body, p.Made.Body) || !reflect.DeepEqual(again.Plan.Parts(), p.Plan.Parts()) {
				t.Errorf("%s: another time it is another", name)
			}
		}
	}
	if evicted == 0 {
		t.Error("no chain evicts messages")
	}
}
