// Package text cuts and measures the texts that a model reads: tool results and their replacements. Start at First and
// Last for cutting, at Template for the wording of replacements. It is pure, knows no policy and no message, and owns
// no tables.
//
// A text is valid UTF-8. Characters are UTF-16 units, as in JavaScript and in policies: one outside the basic plane
// counts as two. A cut never splits a character; it keeps less instead.
package text

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

const wordBytes = 8

// Len returns the length of t in characters.
func Len(t []byte) int {
	n := 0
	for len(t) >= wordBytes {
		n, t = n+unitsIn(t), t[wordBytes:]
	}
	for _, b := range t {
		if b&0xC0 != 0x80 {
			n++
		}
		if b >= 0xF0 {
			n++
		}
	}
	return n
}

// First returns the longest beginning of t of up to n characters.
func First(t []byte, n int) []byte {
	i := 0
	for n > wordBytes && i+wordBytes <= len(t) {
		n, i = n-unitsIn(t[i:]), i+wordBytes
	}
	for i < len(t) && !utf8.RuneStart(t[i]) { // its first byte was counted
		i++
	}
	for i < len(t) {
		r, size := utf8.DecodeRune(t[i:])
		if n -= utf16.RuneLen(r); n < 0 {
			break
		}
		i += size
	}
	return t[:i]
}

// Last returns the longest end of t of up to n characters.
func Last(t []byte, n int) []byte {
	i := len(t)
	for n > wordBytes && i >= wordBytes {
		i -= wordBytes
		n -= unitsIn(t[i:])
	}
	for i < len(t) && !utf8.RuneStart(t[i]) { // its first byte is not counted yet
		i++
	}
	for i > 0 {
		r, size := utf8.DecodeLastRune(t[:i])
		if n -= utf16.RuneLen(r); n < 0 {
			break
		}
		i -= size
	}
	return t[i:]
}

// unitsIn returns the number of characters that begin in the first eight bytes of t, up to nine: one for each
// byte that begins a character, one more if that character has four bytes.
func unitsIn(t []byte) int {
	const lowest = 0x0101010101010101
	word := binary.LittleEndian.Uint64(t)
	continued := word >> 7 &^ (word >> 6) & lowest
	four := word >> 7 & (word >> 6) & (word >> 5) & (word >> 4) & lowest
	return wordBytes - bits.OnesCount64(continued) + bits.OnesCount64(four)
}
