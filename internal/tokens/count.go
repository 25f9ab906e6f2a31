package tokens

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Tokenizers returns the names that Count accepts, in the order in which the documentation lists them.
func Tokenizers() []string { return []string{"o200k", "cl100k"} }

// families are the beginnings of models' names whose tokenizer is published.
var families = []struct{ prefix, tokenizer string }{
	{"gpt-3.5", "cl100k"},
	{"gpt-35", "cl100k"}, // as Azure calls it
	{"gpt-4o", "o200k"},
	{"gpt-4.1", "o200k"},
	{"gpt-4.5", "o200k"},
	{"gpt-4", "cl100k"},
	{"gpt-5", "o200k"},
	{"gpt-oss", "o200k"},
	{"o1", "o200k"},
	{"o3", "o200k"},
	{"o4", "o200k"},
	{"chatgpt-4o", "o200k"},
	{"text-embedding-3", "cl100k"},
}

// ForModel returns the name of a model's tokenizer, "" if it is unknown. The model may be named in any case, with or
// without its provider before a slash.
func ForModel(model string) string {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, f := range families {
		if strings.HasPrefix(model, f.prefix) {
			return f.tokenizer
		}
	}
	return ""
}

// MaxExact is how many bytes of text a caller should have counted exactly at once: some seconds of a processor where
// the text is one long run, which is counted a tenth as fast as prose.
const MaxExact = 8 << 20

// Count returns the exact number of tokens of a text in the vocabulary of a tokenizer. Special tokens count as text.
// The time that it takes grows with the text; if ctx ends meanwhile, the error is that of ctx.
func Count(ctx context.Context, name, text string) (total int, err error) {
	open, ok := vocabularies[name]
	if !ok {
		return 0, fmt.Errorf("there is no tokenizer %q; there are %s", name, strings.Join(Tokenizers(), ", "))
	}
	vocabulary, err := open()
	if err != nil {
		return 0, fmt.Errorf("tokenizer %s: %w", name, err)
	}
	counted, count := "", 0
	for len(text) > 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n := stretch(text)
		if text[:n] != counted { // runs and blanks, which take longest, repeat themselves
			counted = text[:n]
			count = vocabulary.count(counted)
		}
		total += count
		text = text[n:]
	}
	return total, nil
}

// longest bounds a single call of a vocabulary, which takes more than linear time over a run without a break.
const longest = 1024

// stretch returns the length of the next piece of a text that is counted by itself. It ends before a blank between
// words, which no token crosses; only a run without one is cut where that changes the count, by a token or two.
func stretch(text string) int {
	if len(text) <= longest {
		return len(text)
	}
	for n := longest; n > 1; {
		n = strings.LastIndexByte(text[:n], ' ')
		if n > 0 && text[n-1] > ' ' {
			return n
		}
	}
	n := longest
	for n > longest-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
