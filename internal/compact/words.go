package compact

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"

	"github.com/varve-dev/varve/internal/session"
)

// Every text that stands in a result's place is made here, and names the call that brings the result back. A text
// depends on the result and the action alone, never on what came later, so that it does not change once written. Each
// is no longer than those above it on the ladder (see policyMinimum), save that a placeholder may be longer than a stub:
// trim clears what is a stub already.

const (
	previewChars = 80 // of a result's beginning in its placeholder
	labelChars   = 64 // of a tool's name in a placeholder

	// stubTokens is about what a stub costs; stages use it to foresee what a view will have.
	stubTokens = 28
	// markerTokens is about what the line between head and tail costs.
	markerTokens = 24
)

// appendBookends writes a result's head and tail around a line that says what is missing.
func appendBookends(dst, head, tail []byte, ref session.ResultRef, chars, tokens int) []byte {
	dst = append(dst, head...)
	dst = append(dst, "\n\n[... trimmed -- read_result "...)
	dst = append(dst, ref.String()...)
	dst = append(dst, " returns all "...)
	dst = strconv.AppendInt(dst, int64(chars), 10)
	dst = append(dst, " characters, ~"...)
	dst = strconv.AppendInt(dst, int64(tokens), 10)
	dst = append(dst, " tokens ...]\n\n"...)
	return append(dst, tail...)
}

func appendStub(dst []byte, ref session.ResultRef, newer int64) []byte {
	dst = append(dst, "[Superseded by a newer result of the same call at message "...)
	dst = strconv.AppendInt(dst, newer, 10)
	dst = append(dst, " -- read_result "...)
	dst = append(dst, ref.String()...)
	return append(dst, " returns this one]"...)
}

func appendPlaceholder(dst []byte, ref session.ResultRef, tool, preview string) []byte {
	dst = append(dst, "[Tool result trimmed -- "...)
	dst = append(dst, label(tool)...)
	if preview != "" {
		dst = append(dst, ": \""...)
		dst = append(dst, preview...)
		dst = append(dst, '"')
	}
	dst = append(dst, " -- read_result "...)
	dst = append(dst, ref.String()...)
	return append(dst, " returns it]"...)
}

func appendClear(dst []byte, ref session.ResultRef) []byte {
	dst = append(dst, "[Tool result cleared -- read_result "...)
	dst = append(dst, ref.String()...)
	return append(dst, " returns it]"...)
}

// preview returns the beginning of text on one line.
func preview(text []byte) string {
	line := bytes.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, firstChars(text, previewChars))
	return string(bytes.TrimSpace(line))
}

// label makes a tool's name safe to stand in a line: whoever defines the tools chooses it.
func label(tool string) string {
	if tool == "" {
		return "unknown"
	}
	safe := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '"' || r == '\\' {
			return '_'
		}
		return r
	}, tool)
	return safe[:min(len(safe), labelChars)]
}
