package spelling_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/spelling"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"trim", "trim", 0}, {"enabeld", "enabled", 2}, {"", "cap", 3}, {"cap", "", 3}, {"kitten", "sitting", 3},
		{strings.Repeat("x", 1000), "cap", 1000},
	} {
		if got := spelling.Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%.20q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestAHintNamesWhatWasProbablyMeant(t *testing.T) {
	t.Parallel()
	known := []string{"target", "hard", "bookend_max_chars", "id"}
	for given, want := range map[string]string{
		"taget":                  `: did you mean "target"?`,
		"hrad":                   `: did you mean "hard"?`, // half of the name
		"bookend_max_characters": `: did you mean "bookend_max_chars"?`,
		"bookend":                ": there are target, hard, bookend_max_chars, id", // too much is missing
		"x":                      ": there are target, hard, bookend_max_chars, id", // any short name is two edits from id
		"":                       ": there are target, hard, bookend_max_chars, id",
	} {
		if got := spelling.Hint(given, known); got != want {
			t.Errorf("Hint(%q) = %q, want %q", given, got, want)
		}
	}
	if got := spelling.Hint("x", nil); got != ": there are none" {
		t.Errorf("Hint without names = %q", got)
	}
	if got := spelling.Hint("cat", []string{"cap", "car"}); got != `: did you mean "cap"?` {
		t.Errorf("of two names equally near, Hint = %q, want the first", got)
	}
}

func TestShortenKeepsWholeCharacters(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("x", 100)
	for given, want := range map[string]string{
		"":                             "",
		whole:                          whole,
		whole + "y":                    whole + "…",
		strings.Repeat("x", 99) + "漢字": strings.Repeat("x", 99) + "…",
	} {
		if got := spelling.Shorten(given); got != want {
			t.Errorf("Shorten(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`{}`: "an object", `[]`: "an array", `""`: "a string", `true`: "a boolean", `false`: "a boolean", `null`: "null", `-1`: "a number", `7`: "a number",
	} {
		if got := spelling.KindOf(value[0]); got != want {
			t.Errorf("KindOf(%s) = %q, want %q", value, got, want)
		}
	}
}

func TestEscapePointer(t *testing.T) {
	t.Parallel()
	if got := spelling.EscapePointer("a/b~c~1"); got != "a~1b~0c~01" {
		t.Errorf("EscapePointer = %q", got)
	}
}
