package compactor

import (
	"math"
	"testing"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/policy"
)

func TestACompactionIsPriced(t *testing.T) {
	t.Parallel()
	anthropic := policy.Economy{CacheRead: 0.1, CacheWrite: 1.25, Horizon: 20}
	reading := anthropic
	reading.ReadBackTokens = 5000
	for name, c := range map[string]struct {
		card  policy.Economy
		offer Offer
		want  Economy
		pays  bool
	}{
		"cold, nothing is read back": {
			anthropic, Offer{Saved: 1000, After: 9000, Kept: 2000}, Economy{Saved: 1000, Rewritten: 7000, Gain: 3150, Horizon: 20}, true,
		},
		"cold, much is saved": {
			reading, Offer{Saved: 20_000, After: 10_000, Kept: 2000},
			Economy{Saved: 20_000, Rewritten: 8000, Gain: 63_000, Cost: 16_750, ReadBack: 16_750, Horizon: 20}, true,
		},
		"at most half is read back": {
			reading, Offer{Saved: 1000, After: 10_000, Kept: 2000},
			Economy{Saved: 1000, Rewritten: 8000, Gain: 3150, Cost: 2575, ReadBack: 2575, Horizon: 20}, true,
		},
		"cold, too little is saved for a request more": {
			reading, Offer{Saved: 600, After: 10_000, Kept: 2000},
			Economy{Saved: 600, Rewritten: 8000, Gain: 1890, Cost: 1945, ReadBack: 1945, Horizon: 20}, false,
		},
		"warm, many requests come": {
			anthropic, Offer{Saved: 10_000, After: 10_000, Kept: 2000, Warm: true, Requests: 30},
			Economy{Saved: 10_000, Rewritten: 8000, Gain: 20_000, Cost: 9200, Horizon: 20}, true,
		},
		"warm, the hard limit is near": {
			anthropic, Offer{Saved: 10_000, After: 10_000, Kept: 2000, Warm: true, Requests: 3},
			Economy{Saved: 10_000, Rewritten: 8000, Gain: 3000, Cost: 9200, Horizon: 3}, false,
		},
		"cold, the hard limit does not matter": {
			anthropic, Offer{Saved: 10_000, After: 10_000, Kept: 2000, Requests: 3},
			Economy{Saved: 10_000, Rewritten: 8000, Gain: 31_500, Horizon: 20}, true,
		},
		"nothing is saved": {reading, Offer{After: 10_000, Kept: 10_000}, Economy{Horizon: 20}, false},
	} {
		got, pays := Price(c.card, c.offer)
		for _, figure := range []*float64{&got.Gain, &got.Cost, &got.ReadBack} {
			*figure = math.Round(*figure)
		}
		if got != c.want || pays != c.pays {
			t.Errorf("%s: %+v, %t; want %+v, %t", name, got, pays, c.want, c.pays)
		}
	}
}

func TestHowManyRequestsAreLeft(t *testing.T) {
	t.Parallel()
	s := due.Session{Window: 100_000, Calibration: 2, Unseen: 5000, Rule: due.Rule{Hard: 0.95}}
	for name, c := range map[string]struct {
		tokens, tail int64
		messages     int
		want         int
	}{
		"45000 estimated tokens are the limit": {35_000, 10_000, 10, 5},
		"beyond it":                            {60_000, 10_000, 10, 1},
		"no message came":                      {35_000, 0, 0, 0},
		"hardly any growth":                    {0, 1, math.MaxInt32, math.MaxInt32},
	} {
		if got := RequestsLeft(s, c.tokens, c.tail, c.messages); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
