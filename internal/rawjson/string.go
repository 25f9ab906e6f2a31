package rawjson

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote appends the text of a JSON string literal to dst. ok is false when the literal has a lone surrogate, which
// UTF-8 cannot encode: text then has U+FFFD in its place, and a caller that needs the value must keep the literal.
func Unquote(dst, literal []byte) (text []byte, ok bool) {
	rest, ok := literal[1:len(literal)-1], true
	dst = slices.Grow(dst, len(rest)) // a text is not longer than its literal
	for {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return append(dst, rest...), ok
		}
		dst = append(dst, rest[:i]...)
		r, size := Unescape(rest[i:])
		if r < 0 {
			r, ok = utf8.RuneError, false
		}
		dst = utf8.AppendRune(dst, r)
		rest = rest[i+size:]
	}
}

// escapes has the letter behind the backslash for each character that has one, unescapes the reverse.
var (
	escapes   = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	unescapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
)

// Unescape returns the character and the length of the escape sequence at the start of s; r is -1 for a lone surrogate.
func Unescape(s []byte) (r rune, size int) {
	if s[1] == 'u' {
		return unescapeUnicode(s)
	}
	return rune(unescapes[s[1]]), 2
}

func unescapeUnicode(s []byte) (r rune, size int) {
	r = hex4(s[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(s[8:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return -1, 6
}

func hex4(s []byte) rune {
	return rune(hexValue(s[0])<<12 | hexValue(s[1])<<8 | hexValue(s[2])<<4 | hexValue(s[3]))
}

// hexValue returns the value of a hexadecimal digit, or -1.
func hexValue(b byte) int {
	switch {
	case '0' <= b && b <= '9':
		return int(b - '0')
	case 'a' <= b|0x20 && b|0x20 <= 'f':
		return int(b|0x20-'a') + 10
	}
	return -1
}

// Quote appends text as the shortest JSON string literal: only quotes, backslashes and control characters are escaped.
// Bytes that are not UTF-8 become U+FFFD, so that the literal is always valid.
func Quote(dst, text []byte) []byte {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	dst = append(slices.Grow(dst, len(text)+len(text)/16+len(`""`)), '"')
	for {
		i, _ := plain(text, 0)
		dst = append(dst, text[:i]...)
		if i == len(text) {
			return append(dst, '"')
		}
		dst = appendEscape(dst, text[i])
		text = text[i+1:]
	}
}

// QuotedLen returns the length of the literal that Quote would append.
func QuotedLen(text []byte) int {
	var buffer [512]byte
	return len(Quote(buffer[:0], text))
}

func appendEscape(dst []byte, b byte) []byte {
	if letter := escapes[b]; letter != 0 {
		return append(dst, '\\', letter)
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[b>>4], digits[b&15])
}
