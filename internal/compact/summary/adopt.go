package summary

import "strings"

// adopt takes up an earlier summary: what stands under our headings into the same sections, and the lines of one that
// somebody else wrote as they are.
func (d *draft) adopt(previous string) {
	s := earlier
	for line := range strings.Lines(clean(previous)) {
		line = strings.TrimSpace(line)
		if found, ok := headings[line]; ok {
			s = found
			continue
		}
		text := clip(collapse(strings.TrimPrefix(line, "- ")), entryChars)
		if text == "" || s == earlier && wrapping(line) {
			continue
		}
		d.sections[s].put(keyOf(s, text), text)
	}
}

var headings = func() map[string]section {
	all := map[string]section{}
	for s := range layout {
		all[layout[s].heading] = section(s)
	}
	return all
}()

// wrapping reports whether a line is what the policy's wording puts before a summary.
func wrapping(line string) bool { return strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") }

// keyOf returns the key that the entry of a section had when it was written.
func keyOf(s section, entry string) string {
	text := withoutSeq(entry)
	switch s {
	case goal, state:
		return ""
	case files:
		path, _ := cutLast(text, use)
		return path
	case calls, failures, solved:
		subject, _, _ := strings.Cut(text, outcome)
		return subject
	case open:
		_, text, _ := strings.Cut(text, ": ")
		return text
	}
	return text
}

func cutLast(text, separator string) (before, after string) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i+len(separator):]
}
