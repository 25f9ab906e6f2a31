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

// exitCode matches a command's exit code as shells and harnesses of agents write it.
var exitCode = regexp.MustCompile(
	`(?i)(?:exit(?:ed)?[ _]?(?:with )?(?:code|status)|return[ _]?code)["'>]*\s*[:=]?\s*(-?[0-9]+)`)

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

// windowBytes is how much of the beginning and of the end of a result is looked at.
const windowBytes = 4096

// Shows reports whether the text of a result shows that its tool failed: it begins as one of the well-known failures or
// of the texts in more, it is an object that says so, or it is the output of a command that failed.
func Shows(text []byte, runs bool, more []string) bool {
	text = bytes.TrimSpace(text)
	if len(text) > 0 && text[0] == '{' {
		if failed, known := object(text); known {
			return failed
		}
	}
	begin := strings.ToLower(string(text[:min(len(text), windowBytes)]))
	for _, list := range [][]string{beginnings, more} {
		if slices.ContainsFunc(list, func(b string) bool { return strings.HasPrefix(begin, strings.ToLower(b)) }) {
			return true
		}
	}
	return runs && exited(begin, strings.ToLower(string(text[max(0, len(text)-windowBytes):])))
}

// exited reports whether the beginning or the end of a command's output shows a failure. The exit code decides, except
// that 1 without a complaint is a search that found nothing.
func exited(windows ...string) bool {
	for _, window := range windows {
		if code := exitCode.FindStringSubmatch(window); code != nil {
			return code[1] != "0" && (code[1] != "1" || slices.ContainsFunc(windows, complains))
		}
	}
	for _, window := range windows {
		for line := range strings.Lines(window) {
			line = strings.TrimSpace(line)
			if slices.ContainsFunc(breakdowns, func(b string) bool { return strings.HasPrefix(line, b) }) {
				return true
			}
		}
	}
	return false
}

func complains(text string) bool { return Complaint(text) != "" }

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
