package summary

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// exitCodes match a command's exit code as shells and harnesses of agents write it.
var exitCodes = []*regexp.Regexp{
	regexp.MustCompile(`xit(?:ed)?[ _]?(?:with )?(?:[Cc]ode|status)["'>]*\s*[:=]?\s*(-?[0-9]+)`),
	regexp.MustCompile(`eturn[ _]?[Cc]ode["'>]*\s*[:=]?\s*(-?[0-9]+)`),
}

// breakdowns begin a line in the output of a command that failed; complaints are in the line with the reason.
var (
	breakdowns = []string{
		"traceback (most recent call last)", "panic:", "fatal:", "error:", "fail", "npm err!", "bash:", "sh:",
		"segmentation fault",
	}
	complaints = append([]string{
		"error", "exception", "cannot ", "no such file", "denied", "not found", "unknown", "invalid",
		"错误", "失败", "エラー", "失敗", "실패", "오류",
	}, breakdowns...)
)

// fails reports whether a command's output shows a failure; the output of other tools may describe failures of other
// programs. The exit code decides, except that 1 without a complaint is a search that found nothing.
func fails(c call, text string) bool {
	if !c.runs() {
		return false
	}
	for _, pattern := range exitCodes {
		if code := pattern.FindStringSubmatch(text); code != nil {
			return code[1] != "0" && (code[1] != "1" || complaining(text) != "")
		}
	}
	for line := range strings.Lines(strings.ToLower(text)) {
		line = strings.TrimSpace(line)
		if slices.ContainsFunc(breakdowns, func(b string) bool { return strings.HasPrefix(line, b) }) {
			return true
		}
	}
	return false
}

// runs reports whether the call runs a command.
func (c call) runs() bool {
	return c.operation == "command_execution" || c.operation == "test_execution"
}

// complaint returns the line of a failed result that has the reason. Python writes it last.
func complaint(text string) string {
	line := complaining(text)
	if line == "" || strings.HasPrefix(line, "Traceback") {
		line = last(text)
	}
	return short(line)
}

// complaining returns the first line with a complaint, or "".
func complaining(text string) string {
	for line := range strings.Lines(text) {
		small := strings.ToLower(line)
		if slices.ContainsFunc(complaints, func(c string) bool { return strings.Contains(small, c) }) {
			return strings.TrimSpace(line)
		}
	}
	return ""
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
