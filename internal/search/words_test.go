package search

import (
	"fmt"
	"testing"
)

func TestAQueryIsListsOfWords(t *testing.T) {
	t.Parallel()
	for tree, want := range map[string]string{
		`'a' & 'b' <-> 'c' | 'd'`:         `[["a" "b" "c"] ["d"]]`,
		`( 'a' | 'x|y' ) & 'c'`:           `[["a"] ["x|y" "c"]]`,
		`'it''s' & 'b\\c' <2> 'it'''`:     `[["it's" "b\\c" "it'"]]`,
		`'host.com/a?b=(c)' & '''quoted'`: `[["host.com/a?b=(c)" "'quoted"]]`,
	} {
		if got := fmt.Sprintf("%q", alternatives(tree)); got != want {
			t.Errorf("%s is %s, want %s", tree, got, want)
		}
	}
}

func TestAPlaceIsWhatItWasInACursor(t *testing.T) {
	t.Parallel()
	for _, want := range []place{beginning(3, 1<<39+5), {Tier: 62, Rank: 0.0625, Newest: 7, Created: 1<<55 + 3, Tie: 1<<32 - 1}} {
		if got := placeAfter(want.inList()); got != want {
			t.Errorf("%+v has become %+v", want, got)
		}
	}
}
