package text

import (
	"bytes"
	"unicode"
)

// Collapse appends t to dst with each run of white space as one space, and none at the ends. White space is JavaScript's
// \s: U+0085, U+180E and U+200B are none, U+FEFF is.
func Collapse(dst, t []byte) []byte {
	empty := len(dst)
	for t = t[leadingSpace(t):]; len(t) > 0; t = t[leadingSpace(t):] {
		if len(dst) > empty {
			dst = append(dst, ' ')
		}
		word := firstSpace(t)
		dst = append(dst, t[:word]...)
		t = t[word:]
	}
	return dst
}

// Trim returns t without the white space at its ends, JavaScript's as in Collapse.
func Trim(t []byte) []byte {
	t = t[leadingSpace(t):]
	return bytes.TrimRightFunc(t, isSpace)
}

// PlainPreview returns a preview in which every control character is a space: it can stand in any line.
func PlainPreview(t []byte, n int) string {
	line := bytes.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, First(t, n))
	return string(bytes.TrimSpace(line))
}

// leadingSpace returns the length in bytes of the white space that t begins with.
func leadingSpace(t []byte) int {
	i := 0
	for i < len(t) {
		size := spaceSize(t[i:])
		if size == 0 {
			break
		}
		i += size
	}
	return i
}

// firstSpace returns the offset of the first white space in t, or its length.
func firstSpace(t []byte) int {
	for i, b := range t {
		if opensSpace[b] && spaceSize(t[i:]) > 0 {
			return i
		}
	}
	return len(t)
}

// opensSpace marks the bytes that white space may begin with.
var opensSpace = [256]bool{
	'\t': true, '\n': true, '\v': true, '\f': true, '\r': true, ' ': true, 0xC2: true, 0xE1: true, 0xE2: true, 0xE3: true, 0xEF: true,
}

// spaceSize returns the number of bytes of the white space character that t begins with, 0 if it begins with none.
func spaceSize(t []byte) int {
	switch b := t[0]; {
	case !opensSpace[b]:
		return 0
	case b < 0x80:
		return 1
	case b == 0xC2:
		if len(t) >= 2 && t[1] == 0xA0 {
			return 2
		}
	case len(t) >= 3 && isSpace(rune(b&0x0F)<<12|rune(t[1]&0x3F)<<6|rune(t[2]&0x3F)):
		return 3
	}
	return 0
}

func isSpace(r rune) bool {
	switch {
	case r <= ' ':
		return r == ' ' || '\t' <= r && r <= '\r'
	case 0x2000 <= r && r <= 0x200A:
		return true
	}
	switch r {
	case 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return false
}
