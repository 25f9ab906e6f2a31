package summary

import (
	"iter"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/compact/names"
)

// worthKeeping is the least worth of a sentence that a summary keeps.
const worthKeeping = 2

// worth returns how much the reader of a summary loses without a sentence of the agent, from 0 to about 10. It depends
// on the sentence alone, so that an adopted sentence has the same worth again. A whole sentence that names something
// and states a decision, a cause or an exact value is worth most; narration, questions, headings and fragments nothing.
func worth(sentence string) int {
	if narrating(sentence) {
		return 0
	}
	return weigh(sentence, signsOf(sentence))
}

// weigh returns the worth of a sentence with those signs that is no narration.
func weigh(sentence string, found signs) int {
	if !isWhole(sentence) {
		return 0
	}
	points := 0
	prose := stating(sentence)
	if named, path := naming(sentence); named {
		points += 2
		if prose {
			points++
		}
		if path {
			points++
		}
	}
	if hasDigit(sentence) {
		points++
		if prose {
			points += 2
		}
		if len(sentence) <= plainBytes && found&(settings|states) != 0 {
			points++
		}
	}
	for sign, weight := range weights {
		if found&sign != 0 {
			points += weight
		}
	}
	points -= min(len(sentence)/longBytes, 2) // the room is better used for two short sentences
	if strings.Contains(sentence, " | ") || strings.HasSuffix(sentence, "|") {
		points -= 3 // a row of a table
	}
	if found&plans != 0 {
		points -= 2 // it is the next step, at most
	}
	first, _, _ := strings.Cut(sentence, " ")
	points += firstWords[strings.ReplaceAll(first, "’", "'")]
	return max(points, 0)
}

// What a user's sentence is worth that commands, and one that wishes; others that state something are worth less.
const (
	commanded = 9
	wished    = 8
	itsWords  = 2 // what a user states is worth more than what an agent does
)

// demanded returns how much the reader of a summary loses without a sentence of the user.
func demanded(sentence string) int {
	found := signsOf(sentence)
	switch {
	case found&commands != 0:
		return commanded
	case found&wishes != 0:
		return wished
	}
	if points := worth(sentence); points >= worthKeeping {
		return min(points+itsWords, wished-1)
	}
	return 0
}

// How long a plain statement is at most, and from where a sentence is long.
const (
	plainBytes = 160
	longBytes  = 140
)

// firstWords lower the worth of a sentence that begins with them: it tells what the agent did, or does not say what it
// is about.
var firstWords = map[string]int{
	"I": -1, "I've": -1, "I'm": -1, "I'd": -1, "You": -1, "You'd": -1, "It": -2, "It's": -2, "This": -2, "That": -2,
	"That's": -2, "These": -2, "Those": -2, "They": -2, "So": -1, "And": -1, "But": -1, "Or": -2,
}

var weights = map[signs]int{decisions: 3, causes: 2, results: 1, commands: 1, hedges: -2, routine: -2}

// stating reports whether a sentence is a short one of prose rather than an entry of a list: ordinary work has few of
// them, and their values stand nowhere else.
func stating(sentence string) bool {
	first, _ := utf8.DecodeRuneInString(sentence)
	last, _ := utf8.DecodeLastRuneInString(sentence)
	return len(sentence) <= plainBytes && !unicode.IsLower(first) && strings.ContainsRune(".。!！।", last) &&
		!strings.ContainsAny(sentence, "→—#") && sentence[0] != '`'
}

// isWhole reports whether a text is a whole sentence rather than a heading, a question, or a fragment: it has enough
// words, and its end is not open.
func isWhole(sentence string) bool {
	const fewWords, fewRunes = 4, 8
	bare := strings.TrimRight(sentence, "*_`\"') ")
	last, _ := utf8.DecodeLastRuneInString(bare)
	if bare == "" || strings.ContainsRune(":?：？,;{}|", last) || strings.ContainsAny(sentence[:1], "|{/<") {
		return false
	}
	if strings.ContainsFunc(sentence, func(r rune) bool { return r >= 0x0E00 }) {
		return utf8.RuneCountInString(sentence) >= fewRunes
	}
	words := 0
	for word := range strings.FieldsSeq(sentence) {
		if strings.ContainsFunc(word, unicode.IsLetter) {
			words++
		}
	}
	return words >= fewWords
}

// naming reports whether a sentence names something (a path, a symbol, an id, code, or a quoted text), and whether that
// is a path.
func naming(sentence string) (named, path bool) {
	for name := range names.Scan([]byte(sentence), false) {
		named = true
		if path = name.Kind == names.Path; path {
			return named, path
		}
	}
	return named || strings.ContainsAny(sentence, "`\"“「$€£¥@"), false
}

// namesOf yields the names in a sentence: paths, symbols, ids, and numbers of several digits.
func namesOf(sentence string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range names.Scan([]byte(sentence), false) {
			if !yield(string(name.Text)) {
				return
			}
		}
	}
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// rank orders the entries of a section whose room is used: by worth, and less for each doubling of their age in
// messages, and for the room that they take unless the user wants it.
func (n note) rank(newest int64) int {
	const young, shortBytes = 32, 16
	age := max(newest-n.seq, 0) / young
	points := 8*n.worth - 3*bits.Len64(uint64(age))
	if n.worth < wished {
		points -= len(n.text) / shortBytes
	}
	return points
}
