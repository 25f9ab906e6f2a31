package memory

import (
	"slices"
	"strings"
)

// defines reports whether a line says what a name is: it defines or assigns something, has a place with a message, or
// is the head of a function. It is asked of every line that leaves a view, which is why it is no regular expression.
func defines(line string) bool {
	return assigns(line) || opens(line) || declares(line)
}

// assigns reports whether a line has a colon or an equals sign between a name and something.
func assigns(line string) bool {
	const ofName = "_])\"'"
	for i := range len(line) {
		if c := line[i]; c != '=' && c != ':' {
			continue
		}
		end := i
		for end > 0 && isSpace(line[end-1]) {
			end--
		}
		if end == 0 || !isWord(line[end-1]) && strings.IndexByte(ofName, line[end-1]) < 0 {
			continue
		}
		for after := i + 1; after < len(line); after++ {
			if !isSpace(line[after]) {
				return true
			}
		}
	}
	return false
}

// opens reports whether a line has a list of parameters before a brace, a colon or an arrow.
func opens(line string) bool {
	for i := 1; i < len(line); i++ {
		if line[i] != '(' || !isWord(line[i-1]) {
			continue
		}
		for rest := line[i:]; ; {
			_, after, found := strings.Cut(rest, ")")
			if !found {
				return false
			}
			rest = after
			after = withoutSpaces(after)
			if strings.HasPrefix(after, "{") || strings.HasPrefix(after, ":") || strings.HasPrefix(after, "->") {
				return true
			}
		}
	}
	return false
}

// The words that begin a declaration, and those that may stand before them.
var (
	keywords = strings.Fields("func def class fn type interface struct enum const let var module defmodule defp " +
		"impl trait function")
	modifiers = strings.Fields("export public private protected static async pub default abstract")
)

// declares reports whether a line begins with such a word, behind its number where the file was read with numbers.
func declares(line string) bool {
	line = withoutSpaces(line)
	if rest := strings.TrimLeft(line, "0123456789"); len(rest) < len(line) {
		rest = strings.TrimLeft(rest, " ")
		line = strings.TrimLeft(strings.TrimPrefix(rest, "→"), "\t:|- ")
	}
	for {
		end := strings.IndexFunc(line, func(r rune) bool { return r >= 0x80 || !isWord(byte(r)) })
		if end < 0 {
			end = len(line)
		}
		word, rest := line[:end], line[end:]
		if slices.Contains(keywords, word) || word == "create" && strings.HasPrefix(rest, " table") {
			return true
		}
		if !slices.Contains(modifiers, word) || !strings.HasPrefix(rest, " ") {
			return false
		}
		line = rest[1:]
	}
}

// withoutSpaces returns a text without the white space before it.
func withoutSpaces(text string) string {
	for text != "" && isSpace(text[0]) {
		text = text[1:]
	}
	return text
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
