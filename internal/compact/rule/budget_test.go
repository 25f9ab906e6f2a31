package rule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/rule"
)

func TestTheOldestAreReplacedUntilTheSumFits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sizes, after []int
		budget       int
		want         []bool
	}{
		"a sum that fits stays":            {[]int{10, 20}, []int{1, 1}, 30, []bool{false, false}},
		"one is enough":                    {[]int{10, 20}, []int{1, 1}, 29, []bool{true, false}},
		"the newest is not spared":         {[]int{10, 20}, []int{1, 1}, 5, []bool{true, true}},
		"what is left counts":              {[]int{10, 10, 10}, []int{8, 8, 8}, 27, []bool{true, true, false}},
		"growing does not help":            {[]int{1, 1, 10}, []int{9, 9, 0}, 5, []bool{true, true, true}},
		"nothing at all":                   {nil, nil, 0, []bool{}},
		"a budget below nothing takes all": {[]int{0, 5}, []int{0, 0}, -1, []bool{true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, rule.OverBudget(c.sizes, c.after, c.budget)); diff != "" {
				t.Errorf("OverBudget(%v, %v, %d) (-want +got):\n%s", c.sizes, c.after, c.budget, diff)
			}
		})
	}
}

func TestTheNewestThatFitAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sizes []int
		room  int
		want  int
	}{
		"all of them":                      {[]int{1, 2, 3}, 6, 3},
		"the newest two":                   {[]int{1, 2, 3}, 5, 2},
		"the first that does not fit ends": {[]int{1, 9, 3}, 5, 1},
		"none":                             {[]int{1, 2, 3}, 2, 0},
		"no room takes what has no size":   {[]int{1, 0}, 0, 1},
		"less than no room":                {[]int{0}, -1, 0},
		"nothing at all":                   {nil, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rule.Fit(c.sizes, c.room); got != c.want {
				t.Errorf("Fit(%v, %d) = %d, want %d", c.sizes, c.room, got, c.want)
			}
		})
	}
}
