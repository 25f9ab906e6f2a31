package tokens_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/tokens"
)

func count(t testing.TB, tokenizer, text string) int {
	t.Helper()
	n, err := tokens.Count(t.Context(), tokenizer, text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tolerance is how far the estimate of one page may be off; docs/tokens.md has the errors over whole corpora.
const tolerance = 0.15

func TestTheEstimateOfEveryScriptIsNearTheExactCount(t *testing.T) {
	t.Parallel()
	worst := map[string]float64{} // of the systems' formulas, and of the estimate
	for name, text := range map[string]string{
		"English": english, "German": german, "Russian": russian, "Greek": greek, "Arabic": arabic, "Hindi": hindi, "Chinese": chinese,
		"Japanese": japanese, "Korean": korean, "Thai": thai, "Hebrew": hebrew, "code": code, "JSON": jsonText, "tool output": listing,
	} {
		exact, estimate := count(t, "o200k", text), tokens.Estimate([]byte(text))
		off := float64(estimate)/float64(exact) - 1
		t.Logf("%-12s %4d exact, %4d estimated, %+.1f %%; bytes/4 %+.1f %%", name, exact, estimate, 100*off, 100*(float64(len(text))/4/float64(exact)-1))
		if math.Abs(off) > tolerance {
			t.Errorf("%s: %d tokens are estimated, %d are exact", name, estimate, exact)
		}
		for formula, n := range map[string]int{"estimate": estimate, "bytes4": len(text) / 4, "runes4": len([]rune(text)) / 4} {
			worst[formula] = max(worst[formula], math.Abs(float64(n)/float64(exact)-1))
		}
	}
	if worst["estimate"] >= min(worst["bytes4"], worst["runes4"]) {
		t.Errorf("a formula of the systems is nearer: %v", worst)
	}
}

func TestAModelIsCountedInItsVocabulary(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"gpt-4o-mini": "o200k", "openai/GPT-4o": "o200k", "gpt-4-turbo": "cl100k", "gpt-35-turbo": "cl100k", "o3-2025-04-16": "o200k",
		"gpt-5.1": "o200k", "claude-opus-4": "", "my-gpt-4o": "", "": "",
	} {
		if got := tokens.ForModel(model); got != want {
			t.Errorf("%q is counted by %q, want %q", model, got, want)
		}
	}
}

func TestCountsAreThoseOfTheVocabulary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text          string
		o200k, cl100k int
	}{
		{"", 0, 0},
		{"hello world", 2, 2},
		{"The quick brown fox jumps over the lazy dog.", 10, 10},
		{"<|endoftext|>", 7, 7},
		{"I'LL don't,\tyou've\n\n  a", 11, 12},
		{" \r\n \t x   ", 4, 4},
		{"12345 3.14,15", 8, 8},
		{"über ſtraße ǅ क्षत्रिय", 11, 15},
		{"界日本語、文字。", 6, 8},
		{"👍🏽👩\u200d👩\u200d👧 ❤️", 12, 21},
		{"a\u00a0\u2003 b\x00\u0600", 7, 8},
		{"\n\t\t\t\na\x7f", 3, 3}, // the generated matcher of github.com/tiktoken-go/tokenizer is wrong here
		{"ABCDefGHIjklMN_op//qr/\n/", 11, 12},
		{strings.Repeat("=", 72) + ">", 2, 3},
		{strings.Repeat("aA1", 40), 120, 120},
	} {
		if o, cl := count(t, "o200k", c.text), count(t, "cl100k", c.text); o != c.o200k || cl != c.cl100k {
			t.Errorf("%q has %d tokens of o200k and %d of cl100k, want %d and %d", c.text, o, cl, c.o200k, c.cl100k)
		}
	}
}

// TestALongTextCountsAsIfItWereNotCut has counts that github.com/tiktoken-go/tokenizer made of the whole texts.
func TestALongTextCountsAsIfItWereNotCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text          string
		o200k, cl100k int
	}{
		{english, 2820, 2840}, {russian, 3180, 5380}, {code, 5881, 5840}, {jsonText, 6620, 6660}, {listing, 5500, 5500},
	} {
		text := strings.Repeat(c.text, 20)
		if o, cl := count(t, "o200k", text), count(t, "cl100k", text); o != c.o200k || cl != c.cl100k {
			t.Errorf("%d and %d tokens, want %d and %d:\n%.300s", o, cl, c.o200k, c.cl100k, text)
		}
	}
}

// Runs without a break are cut, so that the work and the count are linear in them: ten times the run, ten times the
// tokens.
func TestALongRunWithoutABreakIsCounted(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"a", " ", "\n", "界", "=", "\xff"} {
		short, long := count(t, "o200k", strings.Repeat(run, 20_480)), count(t, "o200k", strings.Repeat(run, 204_800))
		if short < 20_480/128 || long < 9*short || long > 11*short {
			t.Errorf("20,480 times %q are %d tokens, ten times as many are %d", run, short, long)
		}
	}
}

func TestAnUnknownTokenizerIsAnError(t *testing.T) {
	t.Parallel()
	if n, err := tokens.Count(t.Context(), "p50k", "text"); err == nil || !strings.Contains(err.Error(), "o200k, cl100k") {
		t.Errorf("%d, %v", n, err)
	}
}

// TestACountEndsWithItsContext wants a count to look at its context at each stretch, and to stop there.
func TestACountEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tokens.Count(ctx, "o200k", "hello world"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for n := range 4 { // the text has four stretches
		if _, err := tokens.Count(&endingContext{t.Context(), n}, "o200k", strings.Repeat("x", 4096)); !errors.Is(err, context.Canceled) {
			t.Errorf("after %d stretches: %v", n, err)
		}
	}
}

// endingContext is a context that ends when it has been asked a number of times.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestRunsAndBlanksAreCountedOnce wants what repeats itself to cost no more allocations than its first stretches, and to
// be counted as the vocabulary does stretch by stretch.
func TestRunsAndBlanksAreCountedOnce(t *testing.T) {
	for name, character := range map[string]string{"blanks": " ", "line feeds": "\n", "letters": "a", "umlauts": "ü"} {
		short, long := strings.Repeat(character, 8<<10), strings.Repeat(character, 64<<10)
		if got, want := count(t, "o200k", long), 8*count(t, "o200k", short); got != want {
			t.Errorf("%s: %d tokens, want %d", name, got, want)
		}
		few := testing.AllocsPerRun(10, func() { count(t, "o200k", short) })
		if many := testing.AllocsPerRun(10, func() { count(t, "o200k", long) }); many > 2*few {
			t.Errorf("%s: %.0f allocations, %.0f for an eighth", name, many, few)
		}
	}
}
