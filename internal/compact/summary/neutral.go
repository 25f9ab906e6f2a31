package summary

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// tags are those that would end the section or the wrapper around a text, and the control tokens of chat templates.
var tags = regexp.MustCompile(`(?i)<(\s*/?\s*(?:retain|summary|compaction-summary|(?:start|end)_of_turn)\b|[|｜])`)

// own are lines that the product writes: before a summary, in place of results and messages, refs before what they
// bring back, and the headings of the sections.
var own = regexp.MustCompile(`(?im)^([ \t]*(?:\[(?:[mru]\d[\w.-]*\]|summary of messages|messages? \d+|` +
	`tool (?:result|output)|pinned, too)|#+[ \t]*(?:the user['’]s words|` +
	`said by the agent|lines of results(?: and of written files)?|names|` +
	`pinned, word for word` + ownHeadings() + `)[ \t]*$))`)

// ownHeadings returns the headings of Extract as alternatives of a pattern.
func ownHeadings() (pattern string) {
	for s := range layout {
		pattern += "|" + regexp.QuoteMeta(strings.TrimPrefix(layout[s].heading, "## "))
	}
	return pattern
}

// ownQuoted returns a text in which the lines that look like the product's own are quoted.
func ownQuoted(text string) string {
	if !mayHaveOwn(text) {
		return text // as nearly all sentences: the expression is slow
	}
	return own.ReplaceAllString(text, "> $1")
}

// mayHaveOwn reports whether a line of a text begins as the product's own do.
func mayHaveOwn(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimLeft(line, " \t"); line != "" && (line[0] == '[' || line[0] == '#') {
			return true
		}
	}
	return false
}

// Unquoted returns a text without the lines that quote another text or look like the product's own: whoever wrote that,
// it is not whose text this is.
func Unquoted(text string) string {
	if !strings.ContainsAny(text, ">[#") {
		return text
	}
	var kept strings.Builder
	kept.Grow(len(text))
	for line := range strings.Lines(text) {
		if begin := strings.TrimLeft(line, " \t"); !strings.HasPrefix(begin, ">") && !isOwn(line) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// isOwn reports whether a line looks like one of the product's own. It asks the expression, which is slow, only of
// those that begin so.
func isOwn(line string) bool {
	begin := strings.TrimLeft(line, " \t")
	return begin != "" && (begin[0] == '[' || begin[0] == '#') && own.MatchString(line)
}

// Harmless returns a text without invisible characters, with a line feed for each line end, and with escaped tags.
func Harmless(text string) string {
	if !allVisible(text) {
		text = strings.Map(visible, strings.ReplaceAll(text, "\r\n", "\n"))
	}
	return escaped(text)
}

// allVisible reports whether a text has nothing that visible changes.
func allVisible(text string) bool {
	for i := 0; i < len(text); {
		if visibleBytes[text[i]] {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if visible(r) != r || r == utf8.RuneError && size == 1 {
			return false
		}
		i += size
	}
	return true
}

// visibleBytes are the bytes of ASCII that visible leaves as they are.
var visibleBytes = func() (table [256]bool) {
	for r := range rune(utf8.RuneSelf) {
		table[r] = visible(r) == r
	}
	return table
}()

// escaped returns a text in which the tags are escaped.
func escaped(text string) string {
	if !mayHaveTag(text) {
		return text
	}
	return tags.ReplaceAllString(text, "&lt;$1")
}

// mayHaveTag reports whether a text has a less-than sign before the letters with which the name of a tag begins, or
// before a bar. The expression is slow.
func mayHaveTag(text string) bool {
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			return false
		}
		text = text[i+1:]
		name := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(text, spaces), "/"), spaces)
		if name != "" && (name[0] >= utf8.RuneSelf || name[0] == '|' || beginsTag(name)) {
			return true
		}
	}
}

// beginsTag reports whether a name begins as that of one of the tags does. What is no ASCII folds to none of these
// letters but the first.
func beginsTag(name string) bool {
	const letters = 3
	if len(name) < letters {
		return false
	}
	switch strings.ToLower(name[:letters]) {
	case "ret", "sum", "com", "sta", "end":
		return true
	}
	return false
}

// spaces are what \s matches.
const spaces = " \t\n\f\r"

// visible maps line ends to a line feed and invisible characters to -1.
func visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
		return '\n'
	case invisible(r):
		return -1
	}
	return r
}

// invisible reports whether a reader cannot see r: control characters, marks of direction, Unicode's deprecated tags.
// Joiners are visible, because scripts and emoji need them.
func invisible(r rune) bool {
	switch {
	case r < ' ', 0x7F <= r && r < 0xA0:
		return true
	case r < 0x200B:
		return r == 0xAD || r == 0x180E
	case r == 0x200B, r == 0x200E, r == 0x200F, 0x202A <= r && r <= 0x202E, 0x2060 <= r && r <= 0x206F, r == 0xFEFF:
		return true
	}
	return 0xE0000 <= r && r <= 0xE007F
}
