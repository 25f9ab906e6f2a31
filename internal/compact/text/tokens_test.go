package text_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/text"
)

func TestTokensAreQuartersOfWhatEachSystemCounts(t *testing.T) {
	t.Parallel()
	for s, want := range map[string][3]int{ // of UTF-16 units, of code points, of bytes
		"":        {0, 0, 0},
		"abcd":    {1, 1, 1},
		"abcde":   {2, 1, 2},
		"日本語😀x":   {2, 1, 4},
		"éééé":    {1, 1, 2},
		"😀😀😀😀😀😀😀": {4, 1, 7},
	} {
		got := [3]int{text.UTF16Quarters([]byte(s)), text.CodePointQuarters([]byte(s)), text.ByteQuarters([]byte(s))}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", s, diff)
		}
	}
}
