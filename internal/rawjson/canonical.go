package rawjson

import (
	"bytes"
	"slices"
)

// AppendCanonical appends the canonical form of one JSON value, so that values that mean the same have the same bytes:
// no white space, members sorted by key, strings with the fewest escapes. Members of one key keep their order, numbers
// stay as they were written, and so does a string with a lone surrogate.
func AppendCanonical(dst, value []byte) []byte {
	return appendCanonical(dst, value, space(value, 0))
}

func appendCanonical(dst, data []byte, i int) []byte {
	switch data[i] {
	case '{':
		return appendCanonicalObject(dst, data, i)
	case '[':
		dst = append(dst, '[')
		separator := ""
		for element := range Elements(data, i) {
			dst = appendCanonical(append(dst, separator...), data, element.Start)
			separator = ","
		}
		return append(dst, ']')
	case '"':
		return appendCanonicalString(dst, data[i:skipString(data, i)])
	}
	return append(dst, data[i:Skip(data, i)]...)
}

func appendCanonicalObject(dst, data []byte, start int) []byte {
	type member struct {
		key   []byte // canonical literal
		value int
	}
	var members []member
	for key, value := range Members(data, start) {
		members = append(members, member{appendCanonicalString(nil, key.Of(data)), value.Start})
	}
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, m.key...), ':')
		dst = appendCanonical(dst, data, m.value)
	}
	return append(dst, '}')
}

func appendCanonicalString(dst, literal []byte) []byte {
	if bytes.IndexByte(literal, '\\') < 0 {
		return append(dst, literal...)
	}
	text, ok := Unquote(nil, literal)
	if !ok {
		return append(dst, literal...)
	}
	return Quote(dst, text)
}
