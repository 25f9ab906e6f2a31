package text_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/text"
)

// spaces is JavaScript's \s.
var spaces = regexp.MustCompile(`[\x{9}-\x{d} \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]+`)

func TestCollapseKnowsJavaScriptsWhiteSpace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"runs become one space":            {"a  b\t\r\n c", "a b c"},
		"the ends are trimmed":             {"\n a b \n", "a b"},
		"white space outside of ASCII":     {"a\u00a0\u1680b\u2000\u200ac\u2028\u2029d\u202f\u205fe\u3000\ufefff", "a b c d e f"},
		"what only looks like white space": {"a\u0085b\u180ec\u200bd\u2060e", "a\u0085b\u180ec\u200bd\u2060e"},
		"letters that begin with its byte": {"éâ€漢ｱ", "éâ€漢ｱ"},
		"nothing but white space":          {" \n\u3000", ""},
		"nothing":                          {"", ""},
		"a single word":                    {"word", "word"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff("before "+c.want, string(text.Collapse([]byte("before "), []byte(c.text)))); diff != "" {
				t.Errorf("Collapse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreviewsAreOneTrimmedLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		n    int
		want string
	}{
		"line feeds are spaces":         {"a\nb\n\nc", 80, "a b  c"},
		"the cut comes before trimming": {"  abcdef", 4, "ab"},
		"other control characters, too": {"a\tb\r\x1b[0mc\r\n", 80, "a\tb\r [0mc"},
		"nothing":                       {"", 80, ""},
		"a pair at the cut is left":     {"abc😀", 4, "abc"},
		"white space of other scripts":  {"\u3000a\ufeff", 80, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, text.PlainPreview([]byte(c.text), c.n)); diff != "" {
				t.Errorf("PlainPreview (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzCollapse compares Collapse with a regular expression, and checks that a second time changes nothing.
func FuzzCollapse(f *testing.F) {
	f.Add("a \u00a0\u2003b\u200b\ufeff\xc2")
	f.Add(" \u0085\u3000\u3001 ")
	f.Fuzz(func(t *testing.T, s string) {
		got := text.Collapse(nil, []byte(s))
		if utf8.ValidString(s) {
			if want := strings.Trim(spaces.ReplaceAllString(s, " "), " "); string(got) != want {
				t.Errorf("Collapse(%q) = %q, want %q", s, got, want)
			}
			if want := spaces.ReplaceAllString(s, " "); string(text.Trim([]byte(want))) != strings.Trim(want, " ") {
				t.Errorf("Trim(%q) = %q", want, text.Trim([]byte(want)))
			}
		}
		if again := text.Collapse(nil, got); !bytes.Equal(again, got) {
			t.Errorf("Collapse(%q) = %q", got, again)
		}
	})
}
