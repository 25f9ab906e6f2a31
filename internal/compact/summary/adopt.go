package summary

import "strings"

// adopt adds an earlier summary: the lines under the headings of Extract to the same sections, all others unchanged to
// the section for earlier summaries.
func (d *draft) adopt(previous string) {
	s := earlier
	for line := range strings.Lines(clean(previous)) {
		line = strings.TrimSpace(line)
		if found, ok := headings[line]; ok {
			s = found
			continue
		}
		text := clip(collapse(strings.TrimPrefix(line, "- ")), entryChars)
		wrapping := strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") // the policy's words around a summary
		if text == "" || s == earlier && wrapping {
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

// keyOf returns the key with which an entry of a section was written.
func keyOf(s section, entry string) string {
	text := withoutSeq(entry)
	switch s {
	case goal, state:
		return ""
	case files:
		if i := strings.LastIndex(text, use); i >= 0 {
			return text[:i]
		}
	case calls, failures, solved:
		subject, _, _ := strings.Cut(text, outcome)
		return subject
	case open:
		_, text, _ := strings.Cut(text, ": ")
		return text
	}
	return text
}
