package readback

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/session"
)

// The bounds of a query.
const (
	maxQuery = 512
	maxWords = 16
)

// query is what a search looks for: words, and phrases, which were between quotes. Case does not matter.
type query struct {
	given []string // as they were asked for
	words [][]byte // folded
	whole []byte   // the words as they stand in the query, if there are several: it counts more to find them so
	ascii bool
}

// parseQuery reads a query.
func parseQuery(text string) (q query, err error) {
	if len(text) > maxQuery || !utf8.ValidString(text) {
		return q, session.Invalid("q", invalidRequest, "must have at most %d bytes of UTF-8, not %d", maxQuery,
			len(text))
	}
	q.ascii = isASCII(text)
	for i, piece := range strings.Split(text, `"`) {
		if i%2 == 1 {
			q.add(strings.TrimSpace(piece))
			continue
		}
		for _, word := range strings.Fields(piece) {
			q.add(trimmed(word))
		}
	}
	if len(q.words) == 0 || len(q.words) > maxWords {
		return q, session.Invalid("q", invalidRequest, `must have 1 to %d words, or "phrases" between quotes, not %d`,
			maxWords, len(q.words))
	}
	if len(q.words) > 1 && !strings.Contains(text, `"`) {
		q.whole = fold(nil, []byte(strings.TrimSpace(text)))
	}
	return q, nil
}

// trimmed returns a word without the punctuation around it, unless it is nothing else.
func trimmed(word string) string {
	if bare := strings.Trim(word, "?!.,;:()[]{}'`"); bare != "" {
		return bare
	}
	return word
}

// add adds a word once.
func (q *query) add(word string) {
	folded := fold(nil, []byte(word))
	for _, known := range q.words {
		if bytes.Equal(known, folded) {
			return
		}
	}
	if word != "" {
		q.given = append(q.given, word)
		q.words = append(q.words, folded)
	}
}

// fold appends a text in lower case, byte for byte at the same places: a letter whose lower case has another length
// stays as it is.
func fold(dst, text []byte) []byte {
	start := len(dst)
	dst = appendLower(dst, text)
	if isASCII(string(text)) {
		return dst
	}
	for i := start; i < len(dst); {
		r, size := utf8.DecodeRune(dst[i:])
		if lower := unicode.ToLower(r); lower != r && utf8.RuneLen(lower) == size {
			utf8.EncodeRune(dst[i:], lower)
		}
		i += size
	}
	return dst
}

// folded appends a text as the query's words are looked for in it: letters that no word can have need no folding.
func (q *query) folded(dst, text []byte) []byte {
	if q.ascii {
		return appendLower(dst, text)
	}
	return fold(dst, text)
}

// occurrence is where a word is in a text.
type occurrence struct {
	at, end int
	word    int
	isWord  bool // not inside a longer word
}

// maxOccurrences is how often a word is looked for in one text.
const maxOccurrences = 2000

// occurrences returns where the words are in a folded text, word by word.
func (q *query) occurrences(text []byte) (found []occurrence) {
	for w, word := range q.words {
		at := 0
		for range maxOccurrences {
			i := bytes.Index(text[at:], word)
			if i < 0 {
				break
			}
			at += i
			end := at + len(word)
			found = append(found, occurrence{at, end, w, !inWord(text, at) && !inWord(text, end)})
			at = end
		}
	}
	return found
}

// inWord reports whether the characters on both sides of a place belong to one word.
func inWord(text []byte, at int) bool {
	if at == 0 || at == len(text) {
		return false
	}
	before, _ := utf8.DecodeLastRune(text[:at])
	after, _ := utf8.DecodeRune(text[at:])
	return wordy(before) && wordy(after)
}

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// mayOccur reports whether a message's JSON may have one of the words in a text: it is read only then.
func (q *query) mayOccur(folded []byte) bool {
	if bytes.Contains(folded, []byte(`\u`)) {
		return true
	}
	for _, word := range q.words {
		if bytes.ContainsAny(word, "\"\\/\b\f\n\r\t") || bytes.Contains(folded, word) {
			return true
		}
	}
	return false
}
