package compact

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCharsAreUTF16UnitsAndCutsSplitNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text       string
		n          int
		head, tail string
		length     int
	}{
		"letters of ASCII":                         {"abcdefghijklmnopqrs", 10, "abcdefghij", "jklmnopqrs", 19},
		"more than there is":                       {"abc", 9, "abc", "abc", 3},
		"nothing":                                  {"abc", 0, "", "", 3},
		"letters of two bytes count one":           {"ééééé", 2, "éé", "éé", 5},
		"a pair of surrogates counts two":          {"😀😀😀", 4, "😀😀", "😀😀", 6},
		"a cut inside a pair backs off":            {"😀😀😀", 3, "😀", "😀", 6},
		"ASCII before and after what is not ASCII": {"aaaaaaaa漢bbbbbbbb", 9, "aaaaaaaa漢", "漢bbbbbbbb", 17},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := []byte(c.text)
			got := []any{string(firstChars(text, c.n)), string(lastChars(text, c.n)), charLen(text)}
			if diff := cmp.Diff([]any{c.head, c.tail, c.length}, got); diff != "" {
				t.Errorf("head, tail, length (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzCuts: a cut is the longest that fits, and splits no character.
func FuzzCuts(f *testing.F) {
	f.Add("a😀漢é", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if !utf8.ValidString(text) || n < 0 || n > len(text) {
			return
		}
		for _, part := range [][]byte{firstChars([]byte(text), n), lastChars([]byte(text), n)} {
			length := charLen(part)
			if !utf8.Valid(part) || length > n || length < n-1 && len(part) < len(text) {
				t.Errorf("%d characters of %q: %q has %d", n, text, part, length)
			}
		}
	})
}
