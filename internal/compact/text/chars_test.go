package text_test

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/text"
)

func TestCharactersAreUTF16UnitsAndCutsSplitNone(t *testing.T) {
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
		"characters across the border of a word":   {"aaaaaa😀aaaaaa😀aaaaaa", 16, "aaaaaa😀aaaaaa😀", "😀aaaaaa😀aaaaaa", 22},
		"a cut inside a pair at such a border":     {"aaaaaaa😀aaaaaaa😀", 8, "aaaaaaa", "aaaaaa😀", 18},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := []byte(c.text)
			got := []any{string(text.First(whole, c.n)), string(text.Last(whole, c.n)), text.Len(whole)}
			if diff := cmp.Diff([]any{c.head, c.tail, c.length}, got); diff != "" {
				t.Errorf("head, tail, length (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzCuts checks that a length is that of UTF-16, and that a cut is the longest that fits and splits no character.
func FuzzCuts(f *testing.F) {
	f.Add("a😀漢é", 3)
	f.Add("aaaaaa😀漢aaaé", 9)
	f.Add(strings.Repeat("€uro ", 20), 33)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if !utf8.ValidString(s) || n < 0 || n > len(s) {
			return
		}
		whole := []byte(s)
		if got, want := text.Len(whole), len(utf16.Encode([]rune(s))); got != want {
			t.Errorf("%q has %d characters, not %d", s, want, got)
		}
		head, tail := text.First(whole, n), text.Last(whole, n)
		if !strings.HasPrefix(s, string(head)) || !strings.HasSuffix(s, string(tail)) {
			t.Errorf("%d characters of %q: %q and %q", n, s, head, tail)
		}
		for _, part := range [][]byte{head, tail} {
			length := text.Len(part)
			if !utf8.Valid(part) || length > n || length < n-1 && len(part) < len(s) {
				t.Errorf("%d characters of %q: %q has %d", n, s, part, length)
			}
		}
	})
}
