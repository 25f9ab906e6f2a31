package names

import (
	"slices"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see /home/me/repo/src/main.go:12:3 and README.md.":    "src/main.go README.md",
		"read/write the and/or of it, well-known non-trivial":  "",
		"call parseRef() or snake_case, os.path.join(x)":       "parseRef snake_case os.path.join",
		"commit a1b2c3d4e5, ticket ABC-123, run 12":            "a1b2c3d4e5 ABC-123",
		"port 48213, max_retries=17 and timeout: 30":           "port 48213 max_retries max_retries=17 timeout: 30",
		"https://example.org/team/repo/pull/169":               "pull/169",
		"an ordinary sentence, with words. And numbers 7 42":   "",
		"on 127.0.0.1:48213, localhost:8080, example.com:443":  "127.0.0.1:48213 localhost:8080 example.com:443",
		"key 8fK2mZq9LxT4vB7nWc3RyPd src/aGVsbG8gd29ybGQxMjM0": "",
		"a.go-12-x 12:func src/b.go:7: //go:build drwxr-xr-x":  "a.go-12-x src/b.go go:build",
		"order 2026-11-22 at 10:31:12 of 1234567":              "order 2026-11-22 1234567",
	} {
		var got []string
		for name := range Scan([]byte(text), false) {
			got = append(got, string(name.Text))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, strings.Join(got, " "), want)
		}
		var again []string // each name twice, the second time as the cache remembers it
		c := new(Cache[string])
		for range 2 {
			c.Each([]byte(text), false, func(name Name) string { return string(name.Text) }, func(name string, at int) bool {
				if again = append(again, name); !strings.HasPrefix(text[at:], name) {
					t.Errorf("%q: %q does not begin at %d", text, name, at)
				}
				return true
			})
		}
		if !slices.Equal(again, slices.Concat(got, got)) {
			t.Errorf("%q: cached %q", text, again)
		}
	}
}

// wordsOf yields the words of a text as the scanner finds them, byte by byte, each with the one before it.
func wordsOf(text []byte, escaped bool) (all [][2]span) {
	var before span
	for i := 0; i < len(text); {
		switch {
		case classes[text[i]] != separator:
			word := span{i, i}
			for i < len(text) && classes[text[i]] != separator {
				i++
			}
			word.end = i
			if mayName(text[word.start:i]) {
				all = append(all, [2]span{word, before})
			}
			before = word
		case escaped && text[i] == '\\':
			i += escapeWidth(text[i:])
		default:
			i++
		}
	}
	return all
}

// FuzzWords checks the scanner's words, their kinds and the words before them, whatever blocks they lie in.
func FuzzWords(f *testing.F) {
	long := strings.Repeat("wordwordWord", 9) + ".x"
	for _, text := range []string{
		"", "a_b", long, strings.Repeat("ordinary ", 20) + "snake_case  =   12", strings.Repeat("x", 70) + "_1 port 80",
		strings.Repeat("a ", 31) + `\"b_c\n12`, strings.Repeat("y", 62) + `\u00e4b_c ` + long, strings.Repeat(`\\`, 40) + "n_x",
		strings.Repeat("a", 63) + `\n` + strings.Repeat("B", 64) + `\`, strings.Repeat("key: 1234567 ", 12), `port\" 8080 \u`,
	} {
		for pad := range 66 {
			f.Add(append([]byte(strings.Repeat("z ", pad/2)+"z"[:pad%2]), text...), pad%2 == 0)
			f.Add([]byte(strings.Repeat(" ", pad)+text), pad%2 == 1)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, escaped bool) {
		var got [][2]span
		s := scanner{text: text, escaped: escaped}
		for s.next() {
			got = append(got, [2]span{{s.start, s.end}, {s.before, s.last}})
			if s.has != kindsIn(text[s.start:s.end]) {
				t.Errorf("%q has %b", text[s.start:s.end], s.has)
			}
		}
		if want := wordsOf(text, escaped); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	})
}
