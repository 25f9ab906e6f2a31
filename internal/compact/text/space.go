package text

import (
	"bytes"
	"unicode"
)

// Collapse appends t to dst with each run of white space as one space, and none at the ends. White space is that of
// JavaScript's \s: without U+0085, U+180E and U+200B, with U+FEFF.
func Collapse(dst, t []byte) []byte {
	empty := len(dst)
	for word := range bytes.FieldsFuncSeq(t, isSpace) {
		if len(dst) > empty {
			dst = append(dst, ' ')
		}
		dst = append(dst, word...)
	}
	return dst
}

// Trim returns t without the white space at its ends, JavaScript's as in Collapse.
func Trim(t []byte) []byte { return bytes.TrimFunc(t, isSpace) }

// PlainPreview returns the first n characters of t trimmed, with a space for each control character but tabs and
// carriage returns: it fits any line.
func PlainPreview(t []byte, n int) string {
	line := bytes.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\r' && r != '\t' {
			return ' '
		}
		return r
	}, First(t, n))
	return string(Trim(line))
}

// isSpace reports whether r is JavaScript's white space.
func isSpace(r rune) bool { return r == 0xFEFF || r != 0x85 && unicode.IsSpace(r) }
