package rawjson

import "bytes"

// Whole returns a JSON text with U+FFFD in the place of each escape sequence of half a surrogate pair, which JSON may
// have and Unicode has not. A text without any comes back as it is.
func Whole(text []byte) []byte {
	var whole []byte
	done := 0
	for i := bytes.IndexByte(text, '\\'); i >= 0; {
		r, size := Unescape(text[i:])
		if r < 0 {
			whole = append(append(whole, text[done:i]...), "\uFFFD"...)
			done = i + size
		}
		next := bytes.IndexByte(text[i+size:], '\\')
		if next < 0 {
			break
		}
		i += size + next
	}
	if done == 0 {
		return text
	}
	return append(whole, text[done:]...)
}
