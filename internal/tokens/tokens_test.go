package tokens_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// hostile are texts that are unlike those that the weights were fitted to.
var hostile = []string{
	"", "a", " ", "7", "\n", "é", "界", "\x00", "\xff", "\xff\xfe\x80", strings.Repeat("a", 1000), strings.Repeat(" ", 1000), strings.Repeat("=", 1000),
	"caf\u00e9 \\ \" / \u2028 \U0001F600 \ufffd", "a\tb\r\n\r\n  c_d(e)[f]{g}", "AAAA0000aaaa____....", "日本語 русский עברית 한국어", "\\n\\\\n\\u0041",
}

func TestNoPieceOfATextHasMoreTokensThanTheWhole(t *testing.T) {
	t.Parallel()
	for _, text := range append(hostile, english, chinese, hindi, code) {
		text = text[:min(len(text), 300)]
		whole := tokens.Estimate([]byte(text))
		for from := range len(text) {
			for to := from; to <= len(text); to++ {
				if n := tokens.Estimate([]byte(text[from:to])); n > whole {
					t.Fatalf("%q has %d tokens, its piece %q has %d", text, whole, text[from:to], n)
				}
			}
		}
	}
}

func TestPiecesAddUpToTheWhole(t *testing.T) {
	t.Parallel()
	for _, text := range []string{english, russian, chinese, code} {
		whole, sum, pieces := tokens.Estimate([]byte(text)), 0, 0
		for line := range strings.Lines(text) {
			sum += tokens.Estimate([]byte(line))
			pieces++
		}
		if d := sum - whole; d < -2*pieces || d > pieces {
			t.Errorf("%d pieces have %d tokens, the whole has %d:\n%s", pieces, sum, whole, text)
		}
	}
}

func TestALiteralIsEstimatedAsItsText(t *testing.T) {
	t.Parallel()
	texts := append([]string{english, russian, chinese, hindi, code, jsonText}, hostile...)
	for _, text := range texts {
		literal := rawjson.Quote(nil, []byte(text))
		decoded, _ := rawjson.Unquote(nil, literal)
		if got, want := tokens.EstimateLiteral(literal), tokens.Estimate(decoded); got != want {
			t.Errorf("%s has %d tokens, its text has %d", literal, got, want)
		}
	}
	for literal, text := range map[string]string{
		`"\u4e2d\u6587 \ud83d\ude00\/"`: "中文 😀/", `"\ud800x"`: "\ufffdx", `"\b\f\n\r\t\"\\"`: "\b\f\n\r\t\"\\", `"\\u4e2d"`: `\u4e2d`, `""`: "",
	} {
		if got, want := tokens.EstimateLiteral([]byte(literal)), tokens.Estimate([]byte(text)); got != want {
			t.Errorf("%s has %d tokens, its text has %d", literal, got, want)
		}
	}
}

func FuzzEstimate(f *testing.F) {
	for _, text := range append(hostile, english, chinese, code) {
		f.Add(text, len(text)/3)
	}
	f.Fuzz(func(t *testing.T, text string, cut int) {
		whole := tokens.Estimate([]byte(text))
		cut = max(0, min(cut, len(text)))
		head, tail := tokens.Estimate([]byte(text[:cut])), tokens.Estimate([]byte(text[cut:]))
		if head > whole || tail > whole {
			t.Errorf("%q has %d tokens, cut at %d its pieces have %d and %d", text, whole, cut, head, tail)
		}
		literal := rawjson.Quote(nil, []byte(text))
		decoded, _ := rawjson.Unquote(nil, literal)
		if got, want := tokens.EstimateLiteral(literal), tokens.Estimate(decoded); got != want {
			t.Errorf("%s has %d tokens, its text has %d", literal, got, want)
		}
	})
}
