package summary

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

//go:embed lexicon.txt
var lexiconText string

// lexicon has the words and marks that identify one kind of sentence.
type lexicon struct {
	words map[string]bool // single words, and pairs with a space between them
	marks []string        // for languages that write no spaces between words
}

var (
	lexicons  = readLexicons(lexiconText)
	commands  = lexicons["commands"]
	wishes    = lexicons["wishes"]
	results   = lexicons["findings"]
	plans     = lexicons["plans"]
	narration = lexicons["narration"]
)

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

// matches reports whether a sentence has one of the words, pairs of words or marks.
func (l *lexicon) matches(sentence string) bool {
	before, wide := "", false
	sentence = strings.ReplaceAll(strings.ToLower(sentence), "’", "'")
	for word := range strings.FieldsFuncSeq(sentence, separatesWords) {
		if l.words[word] || before != "" && l.words[before+" "+word] {
			return true
		}
		before, wide = word, wide || word[0] >= 0xE0
	}
	if !wide && !strings.ContainsFunc(sentence, func(r rune) bool { return r >= 0x0E00 }) {
		return false
	}
	return slices.ContainsFunc(l.marks, func(mark string) bool { return strings.Contains(sentence, mark) })
}

// separatesWords reports whether r is between words. Marks belong to words: Hindi and Thai write vowels so.
func separatesWords(r rune) bool {
	return r != '\'' && r != '-' && !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
}

// demanding reports whether a sentence states what must or should be.
func demanding(sentence string) bool { return commands.matches(sentence) || wishes.matches(sentence) }

// narrating reports whether a sentence only announces what comes next. It is also true for check boxes, which have a
// section of their own.
func narrating(sentence string) bool {
	if strings.HasPrefix(sentence, "[ ] ") || ticked(sentence) {
		return true
	}
	fields := strings.Fields(strings.ToLower(head(sentence, 40)))
	for n := 1; n <= min(2, len(fields)); n++ {
		if narration.words[strings.Trim(strings.Join(fields[:n], " "), ",.!")] {
			return true
		}
	}
	return slices.ContainsFunc(narration.marks, func(mark string) bool { return strings.HasPrefix(sentence, mark) })
}

// exact reports whether a sentence has values that must be kept as they are: numbers, paths, code, addresses.
func exact(sentence string) bool { return strings.ContainsAny(sentence, "0123456789`/_@$€£¥") }
