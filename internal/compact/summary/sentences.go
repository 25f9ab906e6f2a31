package summary

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentences yields the sentences of a text, each on one line and without the marks of lists and headings. A sentence
// ends at a line's end, at an ideographic stop, and at a full stop before white space and no small letter, so that
// 3.14, main.go and e.g. stay whole. Text between code fences is skipped, and lines of data.
func sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		fenced := false
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			} else if !fenced && !isData(line) && !each(bare(line), yield) {
				return
			}
		}
	}
}

// isData reports whether a line is JSON, or a text as JSON writes it, rather than words.
func isData(line string) bool {
	const members = 2
	return strings.Count(line, `":`)+strings.Count(line, `\n`) >= members
}

// each yields the sentences of one line that have a letter or a digit, and reports whether to continue.
func each(line string, yield func(string) bool) bool {
	meaningful := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for line != "" {
		end := sentenceEnd(line)
		if s := collapse(line[:end]); strings.ContainsFunc(s, meaningful) && !yield(s) {
			return false
		}
		line = line[end:]
	}
	return true
}

// sentenceEnd returns the end of the first sentence of a line. No sentence ends in code between backticks.
func sentenceEnd(line string) int {
	codeEnd := 0
	for i, r := range line {
		next := i + utf8.RuneLen(r)
		if i < codeEnd {
			continue
		}
		switch r {
		case '`':
			codeEnd = next + max(strings.IndexByte(line[next:], '`')+1, 0)
		case '。', '！', '？', '；', '।', '۔', '؟':
			return closed(line, next)
		case '.', '!', '?', ';':
			if rest := closed(line, next); stops(line[rest:]) {
				return rest
			}
		}
	}
	return len(line)
}

// closed returns end moved after the quotation marks and brackets that close there.
func closed(line string, end int) int {
	return end + len(line[end:]) - len(strings.TrimLeft(line[end:], `"')]”’」』）*_`+"`"))
}

// stops reports whether a sentence can end before rest.
func stops(rest string) bool {
	after := strings.TrimLeft(rest, " \t")
	if after == "" {
		return true
	}
	first, _ := utf8.DecodeRuneInString(after)
	return len(after) < len(rest) && !unicode.IsLower(first)
}

// bare returns a line without the marks of headings, quotes, tables and lists before it, but with a check box.
func bare(line string) string {
	line = strings.TrimLeft(line, "#>| \t")
	if listed(line) {
		_, line, _ = strings.Cut(line, " ")
	}
	return strings.TrimLeft(line, " \t")
}

// collapse returns a text on one line, with one space for each run of white space.
func collapse(text string) string {
	if collapsed(text) {
		return text
	}
	return strings.Join(strings.Fields(text), " ")
}

// collapsed reports whether a text has nothing to collapse; it looks closely only at visible ASCII.
func collapsed(text string) bool {
	spaced := true // the byte before is white space, or the text begins
	for i := range len(text) {
		b := text[i]
		if b < ' ' || b >= utf8.RuneSelf || b == ' ' && spaced {
			return false
		}
		spaced = b == ' '
	}
	return !spaced || text == ""
}

// clip returns a text on one line shortened to about n characters. It cuts between words if possible, because half a
// number is another number. A text that was clipped before does not change.
func clip(text string, n int) string {
	if strings.HasSuffix(text, "…") {
		n++
	}
	end := len(text)
	for i := range text {
		if n--; n < 0 {
			end = i
			break
		}
	}
	if end == len(text) {
		return text
	}
	return strings.TrimRight(text[:wordEnd(text, end)], " ") + "…"
}

// wordEnd returns the end of a word at or before end, or end if the word is very long.
func wordEnd(text string, end int) int {
	const longest = 100
	for i := end; i > max(0, end-longest); i-- {
		wide := text[i-1] >= utf8.RuneSelf && text[i] >= utf8.RuneSelf && utf8.RuneStart(text[i])
		if wide || text[i-1] == ' ' || text[i] == ' ' {
			return i
		}
	}
	return end
}
