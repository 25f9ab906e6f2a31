package summary

import (
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/compact/failure"
)

// runs reports whether the call runs a command.
func (c call) runs() bool {
	return c.operation == "command_execution" || c.operation == "test_execution"
}

// complaint returns the line of a failed result that has the reason. Python writes it last.
func complaint(text string) string {
	line := failure.Complaint(text)
	if line == "" || strings.HasPrefix(line, "Traceback") {
		line = last(text)
	}
	return short(line)
}

// lineOf returns a result in one line: the last one of a command, the first one of other tools.
func lineOf(c call, text string) string {
	if c.runs() {
		return last(text)
	}
	for line := range strings.Lines(text) {
		if hasContent(line) {
			return short(line)
		}
	}
	return silence
}

// silence is the outcome of a result without text.
const silence = "nothing"

// last returns the last line with content.
func last(text string) string {
	for text != "" {
		i := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
		if hasContent(text[i:]) {
			return short(text[i:])
		}
		text = text[:i]
	}
	return silence
}

// hasContent reports whether a line has more than the tag that a harness puts around an output.
func hasContent(line string) bool {
	line = strings.TrimSpace(line)
	opens := strings.HasPrefix(line, "<") && strings.HasSuffix(line, ">") && !strings.Contains(line, "</")
	return line != "" && !opens && !strings.HasPrefix(line, "</")
}

func short(line string) string { return clip(collapse(line), outcomeChars) }

// window returns the beginning and the end of a long text.
func window(text string) string {
	if len(text) <= 2*windowBytes {
		return text
	}
	tail := text[len(text)-windowBytes:]
	// Half a word could be the unrecognisable half of a secret.
	tail = strings.TrimLeftFunc(tail, func(r rune) bool { return r != ' ' && r != '\n' })
	return head(text, windowBytes) + "\n" + tail
}

// head returns the beginning of up to n bytes that splits no character.
func head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
