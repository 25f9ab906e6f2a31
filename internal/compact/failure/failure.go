// Package failure recognises the results of tools that failed, in formats that have no flag for it. It is pure.
//
// Start at Shows. What well-known tools write is in texts.json; a policy adds its own texts.
package failure

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

//go:embed texts.json
var tableJSON []byte

// beginnings are what the results of well-known tools begin with when they failed, in lower case.
var beginnings = func() (texts []string) {
	var table []struct{ Tool, Begins string }
	if err := json.Unmarshal(tableJSON, &table); err != nil {
		panic(err)
	}
	for _, row := range table {
		texts = append(texts, strings.ToLower(row.Begins))
	}
	return texts
}()

// exitCode matches a command's exit code as shells and harnesses of agents write it, at the beginning of a text.
var exitCode = regexp.MustCompile(
	`^(?i)(?:exit(?:ed)?[ _]?(?:with )?(?:code|status)|return[ _]?code)["'>]*\s*[:=]?\s*(-?[0-9]+)`)

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

// How much of a result is looked at: of its beginning for a well-known failure, of both ends of a command's output.
const (
	beginningBytes = 128
	windowBytes    = 1024
)

// Shows reports whether the text of a result shows that its tool failed: it begins as one of the well-known failures or
// of the texts in more, it is an object that says so, or it is the output of a command that failed.
func Shows(text []byte, runs bool, more []string) bool {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return false
	}
	if text[0] == '{' {
		if failed, known := object(text); known {
			return failed
		}
	}
	begin := strings.ToLower(string(text[:min(len(text), beginningBytes)]))
	starts := func(b string) bool { return strings.HasPrefix(begin, b) }
	if slices.ContainsFunc(beginnings, starts) || len(more) > 0 && slices.ContainsFunc(lower(more), starts) {
		return true
	}
	return runs && exited(text)
}

func lower(texts []string) []string {
	small := make([]string, len(texts))
	for i, t := range texts {
		small[i] = strings.ToLower(t[:min(len(t), beginningBytes)])
	}
	return small
}

// exited reports whether a command's output shows a failure. The exit code at one of its ends decides, except that 1
// without a complaint is a search that found nothing.
func exited(text []byte) bool {
	first := text[:min(len(text), windowBytes)]
	last := text[max(len(first), len(text)-windowBytes):]
	for _, window := range [][]byte{first, last} {
		if code := codeIn(window); code != "" {
			return code != "0" && (code != "1" || complains(first) || complains(last))
		}
	}
	return breaksDown(first) || breaksDown(last)
}

// codeIn returns the first exit code in a text, "" for none. It looks for the words first: the expression is slow.
func codeIn(text []byte) string {
	for _, word := range [][]byte{[]byte("xit"), []byte("eturn")} {
		for from := 0; ; {
			i := bytes.Index(text[from:], word)
			if i < 0 {
				break
			}
			if code := exitCode.FindSubmatch(text[max(from+i-1, 0):]); code != nil {
				return string(code[1])
			}
			from += i + len(word)
		}
	}
	return ""
}

// breaksDown reports whether a line begins as that of a failure.
func breaksDown(window []byte) bool {
	for len(window) > 0 {
		line, rest, _ := bytes.Cut(window, []byte{'\n'})
		window = rest
		line = bytes.TrimLeft(line, " \t")
		if len(line) == 0 || !strings.ContainsRune(breakdownLetters, rune(line[0]|0x20)) {
			continue
		}
		begin := strings.ToLower(string(line[:min(len(line), longestBreakdown)]))
		if slices.ContainsFunc(breakdowns, func(b string) bool { return strings.HasPrefix(begin, b) }) {
			return true
		}
	}
	return false
}

// breakdownLetters are those with which breakdowns begin; longestBreakdown is the size of the longest.
var breakdownLetters, longestBreakdown = func() (letters string, longest int) {
	for _, b := range breakdowns {
		letters += b[:1]
		longest = max(longest, len(b))
	}
	return letters, longest
}()

func complains(text []byte) bool { return Complaint(string(text)) != "" }

// Complaint returns the first line of a failed result that has a reason, "" if none has.
func Complaint(text string) string {
	for line := range strings.Lines(text) {
		small := strings.ToLower(line)
		if slices.ContainsFunc(complaints, func(c string) bool { return strings.Contains(small, c) }) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// maxObjectBytes limits which objects are parsed: what reports a failure is short.
const maxObjectBytes = 64 << 10

// object reports whether an object says that its tool failed; known is false if it says neither that nor the opposite.
func object(text []byte) (failed, known bool) {
	var o struct {
		Error    json.RawMessage
		IsError  *bool `json:"isError"`
		Failed   *bool `json:"is_error"`
		Success  *bool
		ExitCode *int `json:"exit_code"`
		Metadata struct {
			ExitCode *int `json:"exit_code"`
		}
	}
	if len(text) > maxObjectBytes || json.Unmarshal(text, &o) != nil {
		return false, false
	}
	for _, code := range []*int{o.ExitCode, o.Metadata.ExitCode} {
		if code != nil {
			return *code != 0, true
		}
	}
	for _, flag := range []*bool{o.IsError, o.Failed} {
		if flag != nil {
			return *flag, true
		}
	}
	if o.Success != nil {
		return !*o.Success, true
	}
	switch string(o.Error) {
	case "":
		return false, false
	case "null", "false", `""`, "{}", "[]":
		return false, true
	}
	return true, true
}
