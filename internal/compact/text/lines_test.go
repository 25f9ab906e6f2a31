package text_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/text"
)

func TestLongLinesAreClippedAndMarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"lines that fit stay":                {"abcd\nab\n", "abcd\nab\n"},
		"a longer one ends in an ellipsis":   {"abcde\nab", "abc…\nab"},
		"its line end stays":                 {"abcde\r\nabcde\n", "abc…\r\nabc…\n"},
		"a carriage return within is no end": {"ab\rcdef", "ab\r…"},
		"characters count, not bytes":        {"éééé\nééééé", "éééé\nééé…"},
		"a pair is not split":                {"ab😀😀", "ab…"},
		"nothing":                            {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := text.ClipLines(nil, []byte(c.text), 4)
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("ClipLines (-want +got):\n%s", diff)
			}
			if again := text.ClipLines(nil, got, 4); !bytes.Equal(again, got) {
				t.Errorf("clipped again: %q", again)
			}
		})
	}
}

func TestWholeLinesAreKeptUnlessNoneFits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text       string
		n          int
		head, tail string
	}{
		"a part of a line is left":    {"one\ntwo\nthree\n", 9, "one\ntwo", "three\n"},
		"lines that fit just so":      {"one\ntwo\nsix", 7, "one\ntwo", "two\nsix"},
		"no line fits":                {"onetwo\nthree", 4, "onet", "hree"},
		"only an end of a line fits":  {"onetwo\nthree\n", 1, "o", "\n"},
		"all of it fits":              {"one\ntwo", 20, "one\ntwo", "one\ntwo"},
		"the whole text is no line":   {"onetwo", 6, "onetwo", "onetwo"},
		"nothing is asked for at all": {"one\ntwo", 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := []string{string(text.WholeLinesHead([]byte(c.text), c.n)), string(text.WholeLinesTail([]byte(c.text), c.n))}
			if diff := cmp.Diff([]string{c.head, c.tail}, got); diff != "" {
				t.Errorf("head, tail (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzLines compares counting and clipping lines with splitting them.
func FuzzLines(f *testing.F) {
	f.Add("one\r\ntwo\n\nthree", 8)
	f.Add("\r\n\r\r\n", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if !utf8.ValidString(s) || n < 1 || n > 1000 {
			return
		}
		lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
		if got := text.CountLines([]byte(s)); got != len(lines) {
			t.Errorf("CountLines(%q) = %d", s, got)
		}
		clipped := strings.Split(strings.ReplaceAll(string(text.ClipLines(nil, []byte(s), n)), "\r\n", "\n"), "\n")
		for i, line := range clipped {
			if text.Len([]byte(line)) > n || text.Len([]byte(lines[i])) <= n && line != lines[i] {
				t.Errorf("line %d of %q, clipped to %d: %q", i, s, n, line)
			}
		}
	})
}
