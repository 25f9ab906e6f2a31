package rule_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/rule"
)

var anthropic = rule.Cache{Read: 0.1, Write: 1.25}

func TestACompactionIsWorthWhatItSavesAgainstWhatItRewrites(t *testing.T) {
	t.Parallel()
	type verdict struct {
		Worth      bool
		Gain, Cost float64
	}
	for name, c := range map[string]struct {
		saved, rewritten int64
		warm             bool
		horizon          int
		prices           rule.Cache
		want             verdict
	}{
		"much is saved behind a short tail": {40_000, 10_000, true, 20, anthropic, verdict{true, 80_000, 11_500}},
		"little is saved before a long one": {2_000, 60_000, true, 20, anthropic, verdict{false, 4_000, 69_000}},
		"the same for many more requests":   {2_000, 60_000, true, 400, anthropic, verdict{true, 80_000, 69_000}},
		"a cold cache has nothing to lose":  {2_000, 60_000, false, 3, anthropic, verdict{true, 2_900, 0}},
		"without a cache all is full price": {2_000, 60_000, true, 3, rule.Cache{Read: 1, Write: 1}, verdict{true, 6_000, 0}},
		"what reads for nothing":            {2_000, 10, true, 20, rule.Cache{Read: 0, Write: 1}, verdict{false, 0, 10}},
		"nothing is saved":                  {0, 0, false, 20, anthropic, verdict{}},
		"no request will come":              {2_000, 10, false, 0, anthropic, verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worth, gain, cost := rule.Worth(c.saved, c.rewritten, c.warm, c.horizon, c.prices)
			near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
			if diff := cmp.Diff(c.want, verdict{worth, gain, cost}, near); diff != "" {
				t.Errorf("Worth (-want +got):\n%s", diff)
			}
		})
	}
}

// event is a request of a trace: the tokens appended since the last one, how many of them a later compaction would keep,
// and whether the provider has dropped the prefix meanwhile.
type event struct {
	tokens, trimmed int64
	cold            bool
}

// session is a view and the part of its beginning that the provider caches.
type session struct {
	view   []event // tokens == trimmed once it is compacted
	cached int64
	paid   float64
}

// offer returns what a compaction of all but the last four events would save and rewrite.
func (s *session) offer() (saved, rewritten int64) {
	kept := true
	for i, e := range s.view {
		if i < len(s.view)-4 && e.trimmed < e.tokens {
			saved, kept = saved+e.tokens-e.trimmed, false
			e.tokens = e.trimmed
		}
		if !kept {
			rewritten += e.tokens
		}
	}
	return saved, rewritten
}

func (s *session) compact() {
	_, rewritten := s.offer()
	for i := range max(0, len(s.view)-4) {
		s.view[i].tokens = s.view[i].trimmed
	}
	s.cached = min(s.cached, s.length()-rewritten)
}

func (s *session) length() int64 {
	total := int64(0)
	for _, e := range s.view {
		total += e.tokens
	}
	return total
}

// request sends the view: the cached part is read, the rest is written.
func (s *session) request(prices rule.Cache) {
	length := s.length()
	s.paid += prices.Read*float64(s.cached) + prices.Write*float64(length-s.cached)
	s.cached = length
}

// choice decides whether to compact before request i.
type choice func(i int, saved, rewritten int64, warm bool) bool

func never(int, int64, int64, bool) bool { return false }

func always(_ int, saved, _ int64, _ bool) bool { return saved > 0 }

// pay returns the cost of a trace.
func pay(trace []event, prices rule.Cache, compact choice) float64 {
	s := session{}
	for i, e := range trace {
		s.view = append(s.view, e)
		if e.cold {
			s.cached = 0
		}
		if saved, rewritten := s.offer(); compact(i, saved, rewritten, !e.cold) {
			s.compact()
		}
		s.request(prices)
	}
	return s.paid
}

// trace returns requests, of which some are large results that can be trimmed, and some come when the cache is cold.
func trace(r *rand.Rand, requests int) []event {
	events := make([]event, requests)
	coldness := r.Float64() * 0.3
	for i := range events {
		tokens := int64(r.ExpFloat64() * 800)
		events[i] = event{tokens, tokens, r.Float64() < coldness}
		if r.IntN(3) == 0 {
			events[i].tokens += int64(r.ExpFloat64() * 4000)
		}
	}
	return events
}

func TestACompactionThatIsWorthItNeverCostsMoreThanWaiting(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 1))
	for range 2_000 {
		prices := rule.Cache{Read: r.Float64()}
		prices.Write = prices.Read + r.Float64()*1.5
		events, horizon := trace(r, 1+r.IntN(60)), 1+r.IntN(40)
		worth := func(i int, saved, rewritten int64, warm bool) bool {
			worth, _, _ := rule.Worth(saved, rewritten, warm, min(horizon, len(events)-i), prices)
			return worth
		}
		if ours, waiting := pay(events, prices, worth), pay(events, prices, never); ours > waiting*(1+1e-9) {
			t.Fatalf("%d requests at %+v, horizon %d: %.0f, waiting costs %.0f", len(events), prices, horizon, ours, waiting)
		}
	}
}

// The end of a session is unknown: here the horizon is only the mean number of requests still to come.
func TestWeighingIsCheaperThanNeverAndThanAlwaysCompacting(t *testing.T) {
	t.Parallel()
	for _, horizon := range []int{3, 10, 30, 100} {
		r := rand.New(rand.NewPCG(uint64(horizon), 2))
		worth := func(_ int, saved, rewritten int64, warm bool) bool {
			worth, _, _ := rule.Worth(saved, rewritten, warm, horizon, anthropic)
			return worth
		}
		var ours, waiting, eager float64
		for range 400 {
			events := trace(r, 1+int(r.ExpFloat64()*float64(horizon)))
			ours += pay(events, anthropic, worth)
			waiting += pay(events, anthropic, never)
			eager += pay(events, anthropic, always)
		}
		if ours > waiting || ours > eager {
			t.Errorf("horizon %d: %.0f, but never compacting costs %.0f and always %.0f", horizon, ours, waiting, eager)
		}
		t.Logf("horizon %d: %.3f of never compacting, %.3f of always", horizon, ours/waiting, ours/eager)
	}
}
