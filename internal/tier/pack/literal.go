package pack

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Style is how a program writes a text as a JSON string: which characters it escapes although it need not, and how. It
// has one bit for each habit.
type Style uint16

// The habits. Go escapes HTML and the line separators; Python escapes all but ASCII, and DEL; PHP escapes slashes and
// all but ASCII; JavaScript and most others have none.
const (
	raw            Style = 1 << iota // no string at all: the bytes of any JSON value
	ascii                            // characters beyond ASCII as \uXXXX
	upper                            // hexadecimal digits in upper case
	slash                            // "/" as "\/"
	html                             // "<", ">" and "&" as \uXXXX
	apostrophe                       // "'" as \u0027
	deleted                          // DEL as \u007f
	lineSeparators                   // U+2028 and U+2029 as \uXXXX
	longControls                     // \b and \f as \uXXXX
	longSpaces                       // \n, \r and \t as \uXXXX
	array                            // with raw: the value is an array
	object                           // with raw: the value is an object
	anyStyle       = 1<<iota - 1
)

// styleOf returns the only style in which a program may have written a literal, judged by its escapes. It is a guess:
// a literal may be written in two styles.
func styleOf(literal []byte) (s Style) {
	for rest := literal[1 : len(literal)-1]; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return s
		}
		rest = rest[i:]
		r, size := rawjson.Unescape(rest)
		if rest[1] == '/' {
			s |= slash
		}
		if rest[1] == 'u' {
			s |= habitOf(r)
			if bytes.ContainsAny(rest[2:size], "ABCDEF") {
				s |= upper
			}
		}
		rest = rest[size:]
	}
}

// habitOf returns the habit of which the escape \uXXXX of a character is a sign.
func habitOf(r rune) Style {
	switch {
	case r == '\b', r == '\f':
		return longControls
	case r == '\n', r == '\r', r == '\t':
		return longSpaces
	case r == '<', r == '>', r == '&':
		return html
	case r == '\'':
		return apostrophe
	case r == 0x7f:
		return deleted
	case r == '\u2028', r == '\u2029':
		return lineSeparators
	case r > 0x7f:
		return ascii
	}
	return 0
}

// quote appends text as a JSON string in a style.
func (s Style) quote(dst, text []byte) []byte {
	dst = append(dst, '"')
	for len(text) > 0 {
		n := s.plain(text)
		dst = append(dst, text[:n]...)
		if text = text[n:]; len(text) == 0 {
			break
		}
		r, size := utf8.DecodeRune(text)
		dst = s.escape(dst, r)
		text = text[size:]
	}
	return append(dst, '"')
}

// always is set among the habits of a byte that is always escaped.
const always Style = 1 << 15

// habits are the habits by which a byte may be escaped. Those of bytes beyond ASCII are of the characters that they may
// begin.
var habits = func() (list [256]Style) {
	for b := range list {
		switch {
		case b >= utf8.RuneSelf:
			list[b] = ascii | lineSeparators
		case Style(0).escapes(rune(b)):
			list[b] = always
		case b == '/':
			list[b] = slash
		default:
			list[b] = habitOf(rune(b))
		}
	}
	return list
}()

// plain returns how many bytes at the start of a text stand for themselves.
func (s Style) plain(text []byte) int {
	may := s | always
	for i := 0; i < len(text); {
		if habits[text[i]]&may == 0 {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if (size > 1 || text[i] < utf8.RuneSelf) && s.escapes(r) {
			return i
		}
		i += size
	}
	return len(text)
}

func (s Style) escapes(r rune) bool {
	switch {
	case r < ' ', r == '"', r == '\\':
		return true
	case r == '/':
		return s&slash != 0
	case r == '\u2028', r == '\u2029':
		return s&(ascii|lineSeparators) != 0
	}
	habit := habitOf(r)
	return s&habit != 0
}

// letters has the character behind the backslash of the short escapes.
var letters = map[rune]byte{'"': '"', '\\': '\\', '/': '/', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

func (s Style) escape(dst []byte, r rune) []byte {
	if letter, ok := letters[r]; ok && s&habitOf(r) == 0 {
		return append(dst, '\\', letter)
	}
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return s.hex(s.hex(dst, high), low)
	}
	return s.hex(dst, r)
}

func (s Style) hex(dst []byte, r rune) []byte {
	digits := "0123456789abcdef"
	if s&upper != 0 {
		digits = "0123456789ABCDEF"
	}
	return append(dst, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
