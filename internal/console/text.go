package console

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// shown returns a page in which nothing hides: each control character, and each that has no width or changes the
// direction of what follows, is written as its number, such as ⟨U+202E⟩. Pages are whole when they pass here, so that
// no field of a template can be forgotten.
func shown(page []byte) []byte {
	i := bytes.IndexFunc(page, hides)
	if i < 0 {
		return page
	}
	out := make([]byte, 0, len(page)+len(page)/16)
	out = append(out, page[:i]...)
	for len(page) > i {
		r, size := utf8.DecodeRune(page[i:])
		if hides(r) {
			out = fmt.Appendf(out, "⟨U+%04X⟩", r)
		} else {
			out = append(out, page[i:i+size]...)
		}
		i += size
	}
	return out
}

// hides reports whether a character cannot be seen for what it is. RuneError stands for bytes that are no UTF-8.
func hides(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7F
	}
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// clipped is the beginning of a text.
type clipped struct {
	Text string
	Left int // characters that are not in Text
}

// clip returns the beginning of a text that has at most this number of lines and, about, of characters.
func clip(text string, lines, chars int) clipped {
	end := len(text)
	line, char := 0, 0
	for i, r := range text {
		if char == chars || line == lines {
			end = i
			break
		}
		char++
		if r == '\n' {
			line++
		}
	}
	const few = 80 // characters, for which nobody wants to follow a link
	left := utf8.RuneCountInString(text[end:])
	if left <= few {
		return clipped{Text: text}
	}
	return clipped{Text: text[:end], Left: left}
}
