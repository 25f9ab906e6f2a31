package summary

import "unicode"

// scripts are those that an answer is told by; Kana and Han count as one, as texts mix them.
var scripts = [...][]*unicode.RangeTable{
	{unicode.Latin}, {unicode.Cyrillic}, {unicode.Greek}, {unicode.Arabic}, {unicode.Hebrew}, {unicode.Hangul},
	{unicode.Han, unicode.Hiragana, unicode.Katakana}, {unicode.Devanagari}, {unicode.Bengali}, {unicode.Tamil},
	{unicode.Telugu}, {unicode.Thai}, {unicode.Georgian}, {unicode.Armenian}, {unicode.Ethiopic}, {unicode.Khmer},
}

const latin = 0

// letters has how many letters of each script there are. One of a script that writes syllables or words with a letter
// counts as several.
type letters [len(scripts)]int

// syllabic are the scripts whose letters count as several.
var syllabic = map[int]int{5: 2, 6: 3}

// add counts the letters of a text, of a long one those of its beginning.
func (l *letters) add(text string) {
	const longest = 1 << 16
	last := latin // the script of the letter before, which the next one has, too, as a rule
	for i, r := range text {
		switch {
		case i > longest:
			return
		case r < 0x80:
			if 'a' <= r|0x20 && r|0x20 <= 'z' {
				l[latin]++
			}
		case unicode.IsLetter(r):
			if !unicode.In(r, scripts[last]...) {
				last = scriptOf(r)
			}
			l[last] += max(syllabic[last], 1)
		}
	}
}

func scriptOf(r rune) int {
	for i, tables := range scripts {
		if unicode.In(r, tables...) {
			return i
		}
	}
	return latin
}

func (l *letters) sum() (n int) {
	for _, count := range l {
		n += count
	}
	return n
}

// foreign reports whether most of a text is in a script that what it covers hardly has. That is how an answer in a
// wrong language is told; languages of one script are not told apart. The prompt of a policy counts as what it
// covers: it may ask for another language.
func foreign(text string, r Request) bool {
	const enough = 40 // letters
	var of, all letters
	of.add(text)
	largest := 0
	for i, n := range of {
		if n > of[largest] {
			largest = i
		}
	}
	if of[largest] < enough || 2*of[largest] < of.sum() {
		return false
	}
	for _, known := range []string{r.Previous, r.Retained, r.Prompt, r.RetainPrompt} {
		all.add(known)
	}
	for _, d := range r.Directives {
		all.add(d)
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Kind != Reasoning {
				all.add(p.Text)
			}
		}
	}
	return all.sum() >= enough && 100*all[largest] < all.sum()
}
