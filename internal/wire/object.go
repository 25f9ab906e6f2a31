package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
)

// members looks names up in the object that starts at start, as scanner.pick does, and returns its other members.
func members(body []byte, start int, names []string, values []Span) (others []byte) {
	clear(values)
	for key, value := range rawjson.Members(body, start) {
		if i := keyIndex(body, key, names); i >= 0 {
			values[i] = value
		} else {
			others = appendExtra(others, key.Of(body), value.Of(body))
		}
	}
	return others
}

// othersOf returns the members of an object that have none of these names.
func othersOf(object []byte, names []string) []byte {
	return members(object, 0, names, make([]Span, len(names)))
}

func keyIndex(body []byte, key Span, names []string) int {
	for i, name := range names {
		if rawjson.KeyIs(body, key, name) {
			return i
		}
	}
	return -1
}

// appendExtra appends a member to those of Message.Extra.
func appendExtra(dst, key, value []byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	dst = wrap(dst, "", key, ":")
	return append(dst, value...)
}

// member returns the span of a member's value in an object, the zero Span if it is missing or null.
func member(object []byte, name string) (at Span) {
	start := rawjson.Start(object)
	if start == len(object) || object[start] != '{' {
		return at
	}
	for key, value := range rawjson.Members(object, start) {
		if rawjson.KeyIs(object, key, name) {
			at = value
		}
	}
	if at != (Span{}) && object[at.Start] == 'n' {
		return Span{}
	}
	return at
}

// valueOf returns the value of a member, nil if it is missing or null.
func valueOf(object []byte, name string) []byte {
	if at := member(object, name); at != (Span{}) {
		return at.Of(object)
	}
	return nil
}

// stringMember returns the text of a member, "" if it is missing or no string.
func stringMember(object []byte, name string) string {
	at := member(object, name)
	if at == (Span{}) || object[at.Start] != '"' {
		return ""
	}
	return string(unquoted(at.Of(object)))
}

// isType reports whether an item or block is of a type.
func isType(object []byte, name string) bool { return stringMember(object, "type") == name }

// without returns the object without the members of these names.
func without(object []byte, names ...string) []byte {
	return wrap(nil, "{", othersOf(object, names), "}")
}

func unquoted(literal []byte) []byte {
	text, _ := rawjson.Unquote(nil, literal)
	return text
}

// unquotedName returns the text of a name, nothing for none.
func unquotedName(literal []byte) []byte {
	if literal == nil {
		return nil
	}
	return unquoted(literal)
}

// keySet holds the keys of one object: the first few in place, which is nearly always all of them, and the rest in a
// map, so that an object of thousands of keys is not compared pair by pair.
type keySet struct {
	n     int
	first [12][]byte
	rest  map[string]bool
}

// add reports whether the key was new.
func (k *keySet) add(body []byte, key Span) bool {
	text := key.Of(body)
	if bytes.IndexByte(text, '\\') >= 0 {
		text = rawjson.AppendCanonical(nil, text)
	}
	for _, known := range k.first[:k.n] {
		if bytes.Equal(known, text) {
			return false
		}
	}
	if k.n < len(k.first) {
		k.first[k.n] = text
		k.n++
		return true
	}
	if k.rest[string(text)] {
		return false
	}
	if k.rest == nil {
		k.rest = map[string]bool{}
	}
	k.rest[string(text)] = true
	return true
}

// isSigned reports whether the value of a signature, or of its replacement, is a text.
func isSigned(value []byte) bool { return len(value) > len(`""`) && value[0] == '"' }

// escaped reports whether a text ends with an escape sequence of n bytes: an odd number of backslashes begins it.
func escaped(text []byte, n int) bool {
	end := len(text) - n
	if end < 0 || text[end] != '\\' {
		return false
	}
	slashes := 0
	for end-slashes >= 0 && text[end-slashes] == '\\' {
		slashes++
	}
	return slashes%2 == 1
}

// with appends a piece of JSON text, and a value.
func with[V string | []byte](dst []byte, text string, value V) []byte {
	dst = append(dst, text...)
	return append(dst, value...)
}

// wrap appends a value between two pieces of JSON text.
func wrap[V string | []byte](dst []byte, before string, value V, after string) []byte {
	dst = append(dst, before...)
	dst = append(dst, value...)
	return append(dst, after...)
}

// separate appends a comma unless the array or object, whose content begins at first, is empty.
func separate(dst []byte, first int) []byte {
	if len(dst) > first {
		return append(dst, ',')
	}
	return dst
}
