// Package terminal writes for people at a terminal: names without control characters, numbers with separators, lines
// cut and folded to a width, and a view as text.
//
// Start at View for messages, and at Printable and Thousands for the cells of a table. Nothing that a session holds can
// control the terminal through them.
package terminal

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Printable returns a name as a line or a table can show it: quoted if it would break them.
func Printable(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, hides) {
		return name
	}
	return strconv.Quote(name)
}

// hides reports whether a character controls the terminal or the direction of text.
func hides(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// Plain returns text of several lines, with a mark in place of every such character but line ends and tabs.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && hides(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// Thousands writes a number with a comma between thousands.
func Thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Count writes a number and what it counts, in the plural unless it is 1.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Thousands(int64(n)) + " " + what + "s"
}

// Width returns how many characters a line of the terminal has, or fallback if out is not a terminal.
func Width(out *os.File, fallback int) int {
	if columns, _, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 {
		return columns
	}
	return fallback
}

// Cut shortens a line to a width in characters.
func Cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(width-1, 0)]) + "…"
}

// Fold breaks a sentence between words into lines of a width.
func Fold(sentence string, width int) string {
	var folded strings.Builder
	column := 0
	for i, word := range strings.Fields(Printable(sentence)) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			folded.WriteByte('\n')
			column = 0
		default:
			folded.WriteByte(' ')
			column++
		}
		folded.WriteString(word)
		column += n
	}
	return folded.String()
}

// ShellLine quotes arguments so that a shell reads them back.
func ShellLine(args ...string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = a
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$`*?[]{}()<>|&;~#!") {
			quoted[i] = fmt.Sprintf("'%s'", strings.ReplaceAll(a, "'", `'\''`))
		}
	}
	return strings.Join(quoted, " ")
}
