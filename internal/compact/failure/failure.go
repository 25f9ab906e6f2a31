// Package failure recognises the results of tools that failed, in formats that have no flag for it. It is pure.
//
// Start at Shown. What well-known tools write is in texts.json; a policy adds its own texts.
package failure

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"regexp"
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

// exitCode matches a command's exit code as shells and harnesses write it.
var exitCode = regexp.MustCompile(
	`(?i)(?:exit(?:ed)?[ _]?(?:with )?(?:code|status)|return[ _]?code)["'>]*\s*[:=]?\s*(-?[0-9]+)`)

// windowBytes is how much of the beginning and of the end of a result is looked at.
const windowBytes = 512

// Shown reports whether the text of a result shows that its tool failed: it begins as one of the well-known failures or
// of the texts in more, it is an object that says so, or, for a tool that runs commands, its exit code is not 0.
func Shown(text []byte, runs bool, more []string) bool {
	text = bytes.TrimSpace(text)
	if len(text) > 0 && text[0] == '{' {
		if failed, known := object(text); known {
			return failed
		}
	}
	begin := strings.ToLower(string(text[:min(len(text), windowBytes)]))
	for _, list := range [][]string{beginnings, more} {
		for _, b := range list {
			if strings.HasPrefix(begin, strings.ToLower(b)) {
				return true
			}
		}
	}
	return runs && exited(text)
}

// exited reports whether an exit code at the beginning or the end of a text is not 0.
func exited(text []byte) bool {
	windows := [][]byte{text[:min(len(text), windowBytes)], text[max(0, len(text)-windowBytes):]}
	for _, window := range windows {
		if code := exitCode.FindSubmatch(window); code != nil {
			return string(code[1]) != "0"
		}
	}
	return false
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
