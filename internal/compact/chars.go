package compact

import (
	"encoding/binary"
	"unicode/utf8"
)

// Lengths are UTF-16 units, as in the system that the trim stage comes from: a character outside the basic plane
// counts two. No cut ever splits one.

const highBits = 0x8080808080808080

// charLen returns the length of text in UTF-16 units.
func charLen(text []byte) int {
	n := 0
	for len(text) >= 8 && binary.LittleEndian.Uint64(text)&highBits == 0 {
		text, n = text[8:], n+8
	}
	for _, b := range text {
		if b&0xC0 != 0x80 {
			n++
		}
		if b >= 0xF0 {
			n++
		}
	}
	return n
}

// firstChars returns the longest beginning of text of at most n units.
func firstChars(text []byte, n int) []byte {
	i := 0
	for n >= 8 && i+8 <= len(text) && binary.LittleEndian.Uint64(text[i:])&highBits == 0 {
		i, n = i+8, n-8
	}
	for i < len(text) {
		r, size := utf8.DecodeRune(text[i:])
		if n -= charsOf(r); n < 0 {
			break
		}
		i += size
	}
	return text[:i]
}

// lastChars returns the longest end of text of at most n units.
func lastChars(text []byte, n int) []byte {
	i := len(text)
	for n >= 8 && i >= 8 && binary.LittleEndian.Uint64(text[i-8:])&highBits == 0 {
		i, n = i-8, n-8
	}
	for i > 0 {
		r, size := utf8.DecodeLastRune(text[:i])
		if n -= charsOf(r); n < 0 {
			break
		}
		i -= size
	}
	return text[i:]
}

func charsOf(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}
