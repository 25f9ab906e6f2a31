package conformance

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/text"
)

// The cuts of the systems that the engine does otherwise.

// ends returns the first and the last characters of t; ok is false if they would cover it.
func ends(t []byte, first, last int) (head, tail []byte, ok bool) {
	if text.Len(t) <= first+last {
		return nil, nil, false
	}
	return text.First(t, first), text.Last(t, last), true
}

// firstLines returns the beginning of t that has as many whole lines as fit into maxBytes, without the line end behind
// the last of them. A line end counts one byte, also where it is "\r\n".
func firstLines(t []byte, maxBytes int) []byte {
	kept, used := 0, 0
	for at := 0; at <= len(t); used++ {
		line, _, ended := bytes.Cut(t[at:], []byte{'\n'})
		at += len(line) + 1
		if ended {
			line = bytes.TrimSuffix(line, []byte{'\r'})
		}
		if used += len(line); used > maxBytes {
			break
		}
		kept = at - 1
		if ended && bytes.HasSuffix(t[:kept], []byte{'\r'}) {
			kept--
		}
	}
	return t[:kept]
}

// unixLines returns t with "\r\n" as "\n".
func unixLines(t []byte) []byte { return bytes.ReplaceAll(t, []byte("\r\n"), []byte{'\n'}) }

// preview returns the beginning of t on one line, as cortex writes it into a placeholder: at most n characters, line
// feeds as spaces, trimmed. Other control characters stay.
func preview(t []byte, n int) string {
	return string(text.Trim(bytes.ReplaceAll(text.First(t, n), []byte{'\n'}, []byte{' '})))
}

func TestBookendsThatWouldCoverATextAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text        string
		first, last int
		head, tail  string
		ok          bool
	}{
		"one character is between": {"abcde", 2, 2, "ab", "de", true},
		"none is":                  {"abcde", 2, 3, "", "", false},
		"bytes do not count":       {"éééé", 2, 2, "", "", false},
		"no tail":                  {"abcde", 2, 0, "ab", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head, tail, ok := ends([]byte(c.text), c.first, c.last)
			if diff := cmp.Diff([]any{c.head, c.tail, c.ok}, []any{string(head), string(tail), ok}); diff != "" {
				t.Errorf("head, tail, ok (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirstLinesCountOneByteForALineEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		max  int
		want string
	}{
		"two lines and their separator":       {"abc\nde\nf", 6, "abc\nde"},
		"one byte less is a line less":        {"abc\nde\nf", 5, "abc"},
		"a carriage return costs nothing":     {"abc\r\nde\r\nf", 6, "abc\r\nde"},
		"the first line does not fit":         {"abcdef\nx", 5, ""},
		"all of it":                           {"abc\nde\n", 7, "abc\nde\n"},
		"the empty line at the end does not":  {"abc\nde\n", 6, "abc\nde"},
		"bytes count, not characters":         {"éé\nb", 5, "éé"},
		"an empty text is one line":           {"", 0, ""},
		"empty lines cost their separators":   {"\n\n\n", 2, "\n\n"},
		"a lone carriage return is no border": {"a\rb\nc", 3, "a\rb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, string(firstLines([]byte(c.text), c.max))); diff != "" {
				t.Errorf("FirstLines (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzFirstLines: what is kept are whole lines, and as many as fit.
func FuzzFirstLines(f *testing.F) {
	f.Add("one\r\ntwo\n\nthree", 8)
	f.Add("\r\n\r\r\n", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if !utf8.ValidString(s) || n < 1 || n > 1000 {
			return
		}
		lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
		kept := 0
		for size := 0; kept < len(lines); kept++ {
			if size += len(lines[kept]); size+kept > n {
				break
			}
		}
		got := unixLines(firstLines([]byte(s), n))
		if want := strings.Join(lines[:kept], "\n"); string(got) != want {
			t.Errorf("firstLines(%q, %d) = %q, want %q", s, n, got, want)
		}
	})
}

func TestPreviewsAreTrimmedBehindTheCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		n    int
		want string
	}{
		"line feeds are spaces":         {"a\nb\n\nc", 80, "a b  c"},
		"the cut comes before trimming": {"  abcdef", 4, "ab"},
		"other control characters stay": {"a\tb\r\x1b[0mc\r\n", 80, "a\tb\r\x1b[0mc"},
		"nothing":                       {"", 80, ""},
		"a pair at the cut is left":     {"abc😀", 4, "abc"},
		"white space of other scripts":  {"\u3000a\ufeff", 80, "a"},
	} {
		if got := preview([]byte(c.text), c.n); got != c.want {
			t.Errorf("%s: preview(%q) = %q, want %q", name, c.text, got, c.want)
		}
	}
}
