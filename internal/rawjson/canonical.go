package rawjson

import (
	"bytes"
	"slices"
)

// AppendCanonical appends the canonical form of one JSON value; equal values have equal bytes. It has no white space,
// members sorted by key, and strings with the fewest escapes. Members of the same key keep their order. Numbers and
// strings with a lone surrogate keep their bytes.
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
