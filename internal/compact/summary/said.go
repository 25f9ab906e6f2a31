package summary

import (
	"bytes"
	"strings"
)

// Said returns what the user wrote in a text of a message of the user: the text without what a harness added to it
// (reminders, notices, the output of local commands, attached files, rules files, the environment), and "" for a text
// that a harness or an earlier summary wrote as a whole. Of a command of the harness its name and arguments remain, or
// the arguments alone if the command only concerns the harness's own screen. Said takes linear time, and very little
// for a plain text. harness.txt has what it recognises.
//
// What nobody sees is left out, and tags that could end a summary are escaped; a line that looks like one of those that
// the product writes around a summary is marked as quoted.
func Said(text string) string {
	t := strings.TrimSpace(text)
	if words, ok := quoted(t); ok {
		t = strings.TrimSpace(words)
	}
	if machine(t) {
		return ""
	}
	if strings.IndexByte(t, '<') >= 0 {
		t = strings.TrimSpace(withoutElements(requested(t)))
	}
	t = strings.TrimSpace(withoutLines(t))
	if machine(t) {
		return ""
	}
	return ownQuoted(Harmless(t))
}

// MayBeSaid reports whether SaidInResult may find something in a text. It spares nearly all results a copy.
func MayBeSaid(text []byte) bool {
	t := bytes.TrimSpace(text)
	t = bytes.TrimPrefix(bytes.TrimPrefix(t, []byte("<tool_use_error>")), []byte("Error: "))
	return len(t) > 0 && harness.answerLetters[t[0]]
}

// SaidInResult reports whether the result of a call is the user's answer rather than the tool's: the user refused the
// call, or answered its question. It returns what the user said there, "" for a refusal without words. Such a result is
// no failure of the tool, even if it is marked as one.
func SaidInResult(text string) (said string, ok bool) {
	t := strings.TrimSpace(text)
	t = strings.TrimPrefix(strings.TrimPrefix(t, "<tool_use_error>"), "Error: ")
	if t == "" || !harness.answerLetters[t[0]] {
		return "", false
	}
	for _, answer := range harness.answers {
		if strings.HasPrefix(t, answer[0]) {
			return saidAfter(t, answer[1]), true
		}
	}
	return "", false
}

// saidAfter returns the user's words in an answer, which stand after a mark, "" if the mark is not there.
func saidAfter(answer, mark string) string {
	_, words, found := strings.Cut(answer, mark)
	if mark == "" || !found {
		return ""
	}
	if name, isTag := strings.CutPrefix(mark, "<"); isTag {
		words, _, _ = strings.Cut(words, "</"+name)
	}
	words, _, _ = strings.Cut(words, "</tool_use_error>")
	return strings.TrimSuffix(Said(words), " You can now continue with the user's answers in mind.")
}

// quoted returns the user's words in a text that quotes them between marks, and whether it is such a text.
func quoted(t string) (words string, ok bool) {
	for _, quote := range harness.quotes {
		if !strings.HasPrefix(t, quote[0]) {
			continue
		}
		if _, words, ok = strings.Cut(t, quote[1]); ok && quote[2] != "" {
			words, _, _ = strings.Cut(words, quote[2])
		}
		return words, ok
	}
	return "", false
}

// machine reports whether a whole text is a harness's, or empty.
func machine(t string) bool {
	const near = 600
	if t == "" {
		return true
	}
	if harness.textLetters[t[0]] {
		for _, begin := range harness.texts {
			if strings.HasPrefix(t, begin[0]) && strings.Contains(t[:min(len(t), near)], begin[1]) {
				return true
			}
		}
	}
	for _, end := range harness.ends {
		if strings.HasSuffix(t, end[0]) && strings.Contains(t[max(0, len(t)-near):], end[1]) {
			return !strings.HasPrefix(t, end[2])
		}
	}
	return false
}

// withoutLines returns a text without the lines that are a harness's.
func withoutLines(t string) string {
	for _, begin := range harness.lines {
		if strings.Contains(t, begin) {
			t = withoutLine(t, begin)
		}
	}
	return t
}

// withoutLine returns a text without the lines that begin so.
func withoutLine(t, begin string) string {
	var b strings.Builder
	for line := range strings.Lines(t) {
		if !strings.HasPrefix(line, begin) {
			b.WriteString(line)
		}
	}
	return b.String()
}
