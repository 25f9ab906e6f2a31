package rule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/rule"
)

// occurrences returns one for each letter; a capital one does not count.
func occurrences(letters string) []rule.Occurrence[rune] {
	var all []rule.Occurrence[rune]
	for _, letter := range letters {
		all = append(all, rule.Occurrence[rune]{Key: letter | 0x20, Counts: letter >= 'a'})
	}
	return all
}

func TestOlderResultsAreSupersededByNewerOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		letters  string
		keepLast int
		want     []int
	}{
		"the newest of each key stays":            {"abab", 1, []int{2, 3, -1, -1}},
		"the next one of the key is named":        {"aaa", 1, []int{1, 2, -1}},
		"two of a key stay":                       {"aaaa", 2, []int{2, 3, -1, -1}},
		"more stay than there are":                {"aa", 3, []int{-1, -1}},
		"one that does not count leaves older be": {"aA", 1, []int{-1, -1}},
		"but is superseded itself":                {"Aa", 1, []int{1, -1}},
		"and is passed over":                      {"aAa", 1, []int{2, 2, -1}},
		"nothing":                                 {"", 1, []int{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, rule.Superseded(occurrences(c.letters), c.keepLast)); diff != "" {
				t.Errorf("Superseded(%s, %d) (-want +got):\n%s", c.letters, c.keepLast, diff)
			}
		})
	}
}

// FuzzSuperseded checks that each answer is the keepLast-th later one that counts, and does not change when more follow.
func FuzzSuperseded(f *testing.F) {
	f.Add("abAbbac", 1)
	f.Add("aaaaAa", 3)
	f.Fuzz(func(t *testing.T, letters string, keepLast int) {
		if keepLast < 1 || keepLast > 10 || len(letters) > 200 {
			return
		}
		all := occurrences(letters)
		got := rule.Superseded(all, keepLast)
		for i := range all {
			want, left := -1, keepLast
			for j := i + 1; j < len(all) && left > 0; j++ {
				if all[j].Key == all[i].Key && all[j].Counts {
					want, left = j, left-1
				}
			}
			if left > 0 {
				want = -1
			}
			if got[i] != want {
				t.Errorf("%q, %d: %d is superseded by %d, want %d", letters, keepLast, i, got[i], want)
			}
		}
		before := rule.Superseded(all[:len(all)/2], keepLast)
		for i, by := range before {
			if by >= 0 && got[i] != by {
				t.Errorf("%q, %d: %d was superseded by %d, then by %d", letters, keepLast, i, by, got[i])
			}
		}
	})
}

func BenchmarkSuperseded(b *testing.B) {
	all := make([]rule.Occurrence[int], 50_000)
	for i := range all {
		all[i] = rule.Occurrence[int]{Key: i * i % 9973, Counts: i%7 > 0}
	}
	b.ReportAllocs()
	for b.Loop() {
		rule.Superseded(all, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/result")
}
