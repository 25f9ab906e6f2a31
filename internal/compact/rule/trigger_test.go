package rule_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/compact/rule"
)

func TestAShareOfTheWindowIsReachedInWholeTokens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		total, window int64
		ratio         float64
		want          bool
	}{
		"one below":                  {799, 1000, 0.8, false},
		"the share itself":           {800, 1000, 0.8, true},
		"shares are rounded down":    {102, 128, 0.8, true}, // 102.4
		"and not further":            {101, 128, 0.8, false},
		"more than the window":       {1001, 1000, 1, true},
		"a share of no whole token":  {0, 1, 0.8, true},
		"a window of a million":      {799_999, 1_000_000, 0.8, false},
		"a product that is not even": {28, 100, 0.29, true}, // 0.29 × 100 is a little less than 29
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rule.Reached(c.total, c.window, c.ratio); got != c.want {
				t.Errorf("Reached(%d, %d, %v) = %v", c.total, c.window, c.ratio, got)
			}
		})
	}
}
