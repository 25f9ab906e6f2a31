package summary

import "strings"

// Parse reads a model's answer: the insides of the first retain and summary tags, in any case, trimmed. Without a
// summary in tags it is all that stands outside retain tags. It reports false if nothing is left that can be used.
func Parse(text string, retain bool) (Answer, bool) {
	var a Answer
	if retain {
		a.Retain = inside(text, "retain")
	}
	if a.Summary = inside(text, "summary"); a.Summary == "" {
		a.Summary = outside(text)
	}
	return a, a.Retain != "" || a.Summary != ""
}

// inside returns what stands between the first pair of tags of that name.
func inside(text, name string) string {
	start, from, to, _ := pair(lower(text), name)
	if start < 0 {
		return ""
	}
	return trim(text[from:to])
}

// outside returns the text without retain sections and without lone summary tags.
func outside(text string) string {
	var b strings.Builder
	folded := lower(text)
	for {
		start, _, _, end := pair(folded, "retain")
		if start < 0 {
			break
		}
		b.WriteString(text[:start])
		text, folded = text[end:], folded[end:]
	}
	b.WriteString(text)
	return trim(cut(cut(b.String(), "<summary>"), "</summary>"))
}

// pair finds the first opening tag of that name and the first closing one after it; start is -1 if there are none.
func pair(folded, name string) (start, from, to, end int) {
	opening, closing := "<"+name+">", "</"+name+">"
	start = strings.Index(folded, opening)
	if start < 0 {
		return -1, 0, 0, 0
	}
	from = start + len(opening)
	length := strings.Index(folded[from:], closing)
	if length < 0 {
		return -1, 0, 0, 0
	}
	return start, from, from + length, from + length + len(closing)
}

// cut removes every occurrence of a tag.
func cut(text, tag string) string {
	var b strings.Builder
	for folded := lower(text); ; {
		i := strings.Index(folded, tag)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		text, folded = text[i+len(tag):], folded[i+len(tag):]
	}
}

// lower maps A to Z only, so that every index is one into the original as well.
func lower(text string) string {
	folded := []byte(text)
	for i, b := range folded {
		if 'A' <= b && b <= 'Z' {
			folded[i] = b + ('a' - 'A')
		}
	}
	return string(folded)
}
