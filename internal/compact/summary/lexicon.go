package summary

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

//go:embed lexicon.txt
var lexiconText string

// signs are what the words of a sentence say about it: one bit for each lexicon.
type signs uint16

// The signs, in the order of lexiconNames.
const (
	commands signs = 1 << iota
	wishes
	results
	decisions
	causes
	hedges
	routine
	plans
	settings
	states
	beginsPair // it is the first word of a pair
)

var lexiconNames = []string{
	"commands", "wishes", "findings", "decisions", "causes", "hedges", "routine", "plans", "settings",
	"states",
}

// lexicon has the words and marks that identify one kind of sentence.
type lexicon struct {
	words map[string]bool // single words, and pairs with a space between them
	marks []string        // for languages that write no spaces between words
}

var (
	lexicons   = readLexicons(lexiconText)
	narration  = lexicons["narration"]
	announcing = lexicons["announcing"]
	intending  = lexicons["intending"]
	nods       = lexicons["nods"]
)

// signed has the signs of each word, pair of words, and mark of lexiconNames.
var signed, signedMarks = func() (words, marks map[string]signs) {
	words, marks = map[string]signs{}, map[string]signs{}
	for i, name := range lexiconNames {
		for word := range lexicons[name].words {
			words[word] |= 1 << i
			if first, _, ok := strings.Cut(word, " "); ok {
				words[first] |= beginsPair
			}
		}
		for _, mark := range lexicons[name].marks {
			marks[mark] |= 1 << i
		}
	}
	return words, marks
}()

// readLexicons reads lexicon.txt: "= name" begins a lexicon, "marks:" a line of marks between spaces; other lines have
// words between bars.
func readLexicons(text string) map[string]*lexicon {
	all := map[string]*lexicon{}
	var l *lexicon
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if name, ok := strings.CutPrefix(line, "= "); ok {
			l = &lexicon{words: map[string]bool{}}
			all[name] = l
		} else if marks, ok := strings.CutPrefix(line, "marks:"); ok {
			l.marks = append(l.marks, strings.Fields(marks)...)
		} else {
			for word := range strings.SplitSeq(line, "|") {
				l.words[word] = true
			}
		}
	}
	return all
}

// signsOf returns the signs of a sentence: of its words, pairs of words, and marks.
func signsOf(sentence string) (found signs) {
	before, wide := "", false
	sentence = strings.ReplaceAll(strings.ToLower(sentence), "’", "'")
	for word := range strings.FieldsFuncSeq(sentence, separatesWords) {
		found |= signed[word]
		if signed[before]&beginsPair != 0 {
			found |= signed[before+" "+word]
		}
		before, wide = word, wide || word[0] >= 0xE0
	}
	if !wide && !strings.ContainsFunc(sentence, func(r rune) bool { return r >= 0x0E00 }) {
		return found
	}
	for mark, sign := range signedMarks {
		if found&sign != sign && strings.Contains(sentence, mark) {
			found |= sign
		}
	}
	return found
}

// separatesWords reports whether r is between words. Marks belong to words: Hindi and Thai write vowels so.
func separatesWords(r rune) bool {
	return r != '\'' && r != '-' && !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
}

// narrating reports whether a sentence only says what the agent looks at or does, and not why. It is also true for
// check boxes, for which there is a section of their own.
func narrating(sentence string) bool {
	if strings.HasPrefix(sentence, "[ ] ") || ticked(sentence) {
		return true
	}
	return narration.begins(sentence) && !(intending.begins(sentence) && signsOf(sentence)&causes != 0)
}

// begins reports whether a sentence begins with a word, two words or a mark of the lexicon.
func (l *lexicon) begins(sentence string) bool {
	const longest = 40 // bytes of two words
	first, rest, _ := strings.Cut(head(sentence, longest), " ")
	second, _, _ := strings.Cut(rest, " ")
	first, second = bareWord(first), bareWord(second)
	if l.words[first] || second != "" && l.words[first+" "+second] {
		return true
	}
	return slices.ContainsFunc(l.marks, func(mark string) bool { return strings.HasPrefix(sentence, mark) })
}

// bareWord returns a word as the lexicons spell it.
func bareWord(word string) string {
	return strings.ReplaceAll(strings.ToLower(strings.Trim(word, ",.!:—–*")), "’", "'")
}

// nodding reports whether a text of the user asks for nothing new: it is short, and has no words but such as "yes",
// "continue" and "thanks".
func nodding(text string) bool {
	const longest = 60
	if len(text) > longest {
		return false
	}
	text = strings.ToLower(text)
	for _, mark := range nods.marks {
		text = strings.ReplaceAll(text, mark, " ")
	}
	for word := range strings.FieldsFuncSeq(text, separatesWords) {
		if !nods.words[word] {
			return false
		}
	}
	return true
}
