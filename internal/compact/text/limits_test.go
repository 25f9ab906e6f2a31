package text_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/text"
)

func TestLinesAreTakenFromEitherEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text              string
		n                 int
		leading, trailing string
	}{
		"one line of each end":         {"one\ntwo\nthree", 1, "one\n", "three"},
		"a line feed ends the last":    {"one\ntwo\nthree\n", 1, "one\n", "three\n"},
		"two lines":                    {"one\ntwo\nthree\n", 2, "one\ntwo\n", "two\nthree\n"},
		"as many as there are":         {"one\ntwo", 2, "one\ntwo", "one\ntwo"},
		"more than there are":          {"one\ntwo\n", 9, "one\ntwo\n", "one\ntwo\n"},
		"no line":                      {"one\ntwo", 0, "", ""},
		"empty lines are lines":        {"\n\none\n\n", 2, "\n\n", "one\n\n"},
		"an empty text":                {"", 1, "", ""},
		"carriage returns stay":        {"one\r\ntwo\r\n", 1, "one\r\n", "two\r\n"},
		"one line feed is one of each": {"\n", 1, "\n", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := []string{string(text.LeadingLines([]byte(c.text), c.n)), string(text.TrailingLines([]byte(c.text), c.n))}
			if diff := cmp.Diff([]string{c.leading, c.trailing}, got); diff != "" {
				t.Errorf("LeadingLines, TrailingLines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheLongestLineIsMeasuredInCharacters(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"": 0, "a\nabc\nab": 3, "éé\nabc\n": 3, "😀😀\nabc": 4, "abc\r\nab": 3, "\n\n": 0} {
		if got := text.LongestLine([]byte(s)); got != want {
			t.Errorf("LongestLine(%q) = %d, want %d", s, got, want)
		}
		clipped := text.ClipLines(nil, []byte(s+strings.Repeat("x", 9)), 8)
		if got := text.LongestLine(clipped); got > 8 {
			t.Errorf("the longest line of %q has %d characters", clipped, got)
		}
	}
}
