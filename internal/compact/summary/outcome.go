package summary

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// runs reports whether the call runs a command.
func (c call) runs() bool {
	return c.operation == "command_execution" || c.operation == "test_execution"
}

// What the lines of a failed result are judged by. The texts are in lower case.
var (
	telling = []string{
		"error:", "error ", "exception", "panic:", "fatal:", "assert", "undefined", "cannot ", "can't ", "expected",
		"not found", "no such", "denied", "conflict", "refused", "unknown", "invalid", "incorrect", "missing", "failed",
		"错误", "失败", "エラー", "失敗", "실패", "오류",
	}
	failing = []string{"--- fail", "fail:", "failed ", "✗", "✘", "not ok"}
	vague   = []string{
		"exit code", "exit status", "exited with", "return code", "task failed", "build failed", "command failed",
		"lifecycle", "traceback (most recent", "complete log of this run", "warning:", "errno ", "0 failed", "0 error",
	}
)

// complaint returns the line of a failed result that tells the reason, and the name of the failing test if that is in
// another line.
func complaint(text string) string {
	reason, test := "", ""
	highest := 0
	for line := range strings.Lines(text) {
		small := strings.ToLower(head(line, 2*outcomeChars))
		points := pointsOf(small)
		if test == "" && contains(failing, small) {
			test = line
		}
		raised := strings.Contains(small, "error: ") && len(line) > 0 && unicode.IsUpper(rune(line[0]))
		if points > highest || raised && points == highest { // of the errors that Python raises the last one
			reason, highest = line, points
		}
	}
	if reason == "" {
		return last(text)
	}
	if test == "" || test == reason {
		return short(reason)
	}
	return clip(collapse(reason), outcomeChars-subjectChars/2) + " | " + clip(collapse(test), subjectChars/2)
}

// pointsOf returns how much a line in lower case tells about a failure, 0 for nothing.
func pointsOf(small string) int {
	points := 0
	if contains(telling, small) {
		points += 4
	} else if strings.Contains(small, "fail") {
		points += 2
	}
	if points > 0 && placed(small) {
		points += 2
	}
	if contains(vague, small) {
		points = min(points, 1)
	}
	return points
}

func contains(texts []string, line string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(line, t) })
}

// placed reports whether a line names a place in a file: "a.go:12" or "a.ts(12,3)".
func placed(line string) bool {
	for i := range len(line) - 2 {
		named := 'a' <= line[i] && line[i] <= 'z'
		if named && (line[i+1] == ':' || line[i+1] == '(') && '0' <= line[i+2] && line[i+2] <= '9' {
			return true
		}
	}
	return false
}

// lineOf returns a result in one line: of a command the last line that says something, of other tools the first one.
func lineOf(c call, text string) string {
	if c.command.commits {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "[") && strings.Contains(line, "] ") {
				return short(line)
			}
		}
	}
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

// last returns the last line that says something, or the last line with content if none does.
func last(text string) string {
	found := ""
	for text != "" {
		i := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
		if line := text[i:]; hasContent(line) {
			if hasLetter(line) && !aboutShell(line) {
				return short(line)
			}
			if found == "" {
				found = short(line)
			}
		}
		text = text[:i]
	}
	if found == "" {
		return silence
	}
	return found
}

// aboutShell reports whether a line is what a harness adds to a command's output about its shell.
func aboutShell(line string) bool {
	line = strings.TrimSpace(line)
	for _, begin := range []string{
		"[Current working directory", "[Python interpreter", "[Command finished", "[The command completed",
		"(Current directory", "(Open file", "bash-$", "Shell cwd was reset",
	} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

func hasLetter(line string) bool { return strings.ContainsFunc(line, unicode.IsLetter) }

// hasContent reports whether a line has more than the tag that a harness puts around an output.
func hasContent(line string) bool {
	line = strings.TrimSpace(line)
	opens := strings.HasPrefix(line, "<") && strings.HasSuffix(line, ">") && !strings.Contains(line, "</")
	return line != "" && !opens && !strings.HasPrefix(line, "</") && !strings.HasPrefix(line, "<returncode>")
}

func short(line string) string {
	return clip(collapse(strings.TrimSuffix(strings.TrimSpace(line), "</output>")), outcomeChars)
}

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
