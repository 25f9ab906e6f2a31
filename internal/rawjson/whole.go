package rawjson

import "bytes"

// Halves tells which escape sequences a JSON text has.
type Halves struct {
	May    bool // some that may be half of a surrogate pair
	Inside bool // some that may write one in a text that is JSON itself, as arguments are in OpenAI's formats
}

// FindHalves looks for them in a text that nobody checks with CheckHalves.
func FindHalves(text []byte) (h Halves) {
	for {
		// A search for both bytes of \u is several times slower in a text with few backslashes.
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return h
		}
		text = text[i+1:] // behind a backslash that is escaped, there may be an escape of the inner text
		h.note(text)
	}
}

// note looks at what follows a backslash.
func (h *Halves) note(text []byte) {
	switch {
	case len(text) < len(`u0000`) || text[0] != 'u':
	case text[1]|0x20 == 'd' && text[2] >= '8':
		h.May, h.Inside = true, true
	case string(text[1:3]) == "00": // a backslash, a u or a digit of the inner sequence
		h.Inside = true
	}
}

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
