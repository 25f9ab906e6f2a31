// Package tokens counts the tokens of a text, a picture or a file: by a fast estimate, or exactly in one of two
// vocabularies. It is pure.
//
// Start at Estimate; its weights are in weights.go, and docs/tokens.md explains how they were calibrated and how far
// the estimate is off. image.go has the costs of pictures, count.go the exact tokenizers.
package tokens

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Estimate returns about how many tokens a text has. The estimate of a part of the text is never more than that of the
// whole. The estimates of all parts add up to that of the whole, except for rounding (up) and for words that are cut.
func Estimate(text []byte) int { return round(len(text), weigh(start, text)) }

// EstimateLiteral returns the estimate of the text of a JSON string literal, without decoding it.
func EstimateLiteral(literal []byte) int {
	rest := literal[1 : len(literal)-1]
	size := len(rest)
	sum := 0
	before := byte(start)
	for {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return round(size, sum+weigh(before, rest))
		}
		if i > 0 {
			sum += weigh(before, rest[:i])
			before = rest[i-1]
		}
		r, length := rawjson.Unescape(rest[i:])
		rest = rest[i+length:]
		if 0 <= r && r < utf8.RuneSelf {
			sum += int(weights[pair(before, byte(r))])
			before = byte(r)
			continue
		}
		if r < 0 {
			r = utf8.RuneError
		}
		var text [utf8.UTFMax]byte
		n := utf8.EncodeRune(text[:], r)
		sum += weigh(before, text[:n])
		before = text[n-1]
	}
}

// round turns thousandths into tokens. A text that has any bytes has at least one.
func round(size, thousandths int) int {
	if thousandths == 0 && size > 0 {
		return 1
	}
	return (thousandths + 999) / 1000
}

// weigh sums the weights of a text's pairs of bytes; before is the byte that precedes it. Four sums in turn keep the
// additions from waiting for each other.
func weigh(before byte, text []byte) int {
	if len(text) == 0 {
		return 0
	}
	var b, c, d int
	a := int(weights[pair(before, text[0])])
	for len(text) > 8 {
		a += int(weights[binary.LittleEndian.Uint16(text)])
		b += int(weights[binary.LittleEndian.Uint16(text[1:])])
		c += int(weights[binary.LittleEndian.Uint16(text[2:])])
		d += int(weights[binary.LittleEndian.Uint16(text[3:])])
		a += int(weights[binary.LittleEndian.Uint16(text[4:])])
		b += int(weights[binary.LittleEndian.Uint16(text[5:])])
		c += int(weights[binary.LittleEndian.Uint16(text[6:])])
		d += int(weights[binary.LittleEndian.Uint16(text[7:])])
		text = text[8:]
	}
	for i := 1; i < len(text); i++ {
		a += int(weights[pair(text[i-1], text[i])])
	}
	return a + b + c + d
}

// inBase64 has the bytes of both alphabets of base64.
var inBase64 = func() (is [256]bool) {
	for b := range is {
		c := classOf(byte(b))
		is[b] = c == lower || c == upper || c == digit || strings.IndexByte("+/-_=", byte(b)) >= 0
	}
	return is
}()

// IsBase64 reports whether a text is nothing but base64, in either alphabet.
func IsBase64(text []byte) bool {
	for _, b := range text {
		if !inBase64[b] {
			return false
		}
	}
	return true
}
