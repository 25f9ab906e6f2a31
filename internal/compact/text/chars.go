// Package text cuts and measures the texts that a model reads: tool results, and what stands in their place. Start at
// First and Last for cutting, at Template for the wording of what replaces a text. It is pure, knows no policy and no
// message, and owns no tables.
//
// A text is valid UTF-8. Characters are UTF-16 units, as JavaScript counts and as policies say: one outside the basic
// plane is two. No cut ever splits one; a cut inside backs off to the nearest boundary that keeps less.
package text

import (
	"encoding/binary"
	"math/bits"
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

// First returns the longest beginning of t of at most n characters.
func First(t []byte, n int) []byte {
	i := 0
	for n >= wordBytes && i+wordBytes <= len(t) {
		n, i = n-unitsIn(t[i:]), i+wordBytes
	}
	for i < len(t) && !utf8.RuneStart(t[i]) { // its first byte has paid for the character
		i++
	}
	for i < len(t) {
		r, size := utf8.DecodeRune(t[i:])
		if n -= units(r); n < 0 {
			break
		}
		i += size
	}
	return t[:i]
}

// Last returns the longest end of t of at most n characters.
func Last(t []byte, n int) []byte {
	i := len(t)
	for n >= wordBytes && i >= wordBytes {
		i -= wordBytes
		n -= unitsIn(t[i:])
	}
	for i < len(t) && !utf8.RuneStart(t[i]) { // its first byte is still to be paid for
		i++
	}
	for i > 0 {
		r, size := utf8.DecodeLastRune(t[:i])
		if n -= units(r); n < 0 {
			break
		}
		i -= size
	}
	return t[i:]
}

func units(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// unitsIn counts the characters that begin in the first eight bytes of t, which are never more than eight: one for each
// byte that continues none, one more for each that opens four bytes.
func unitsIn(t []byte) int {
	const lowest = 0x0101010101010101
	word := binary.LittleEndian.Uint64(t)
	continued := word >> 7 &^ (word >> 6) & lowest
	four := word >> 7 & (word >> 6) & (word >> 5) & (word >> 4) & lowest
	return wordBytes - bits.OnesCount64(continued) + bits.OnesCount64(four)
}
