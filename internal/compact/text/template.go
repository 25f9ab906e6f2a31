package text

import (
	"fmt"
	"slices"
	"strings"
)

// Template is a text with places for values, written {name}: a policy's wording. The zero Template is empty.
type Template struct{ pieces []piece }

// piece is literal text and the name of the value after it; the last piece has no name.
type piece struct{ literal, name string }

// Parse returns the template of source with values of these names. A name has lower-case letters and underscores. A
// brace that does not begin such a {name} is text. The error is about a {name} that is not in names, or one of names
// without a closing brace.
func Parse(source string, names ...string) (Template, error) {
	t := Template{}
	rest, literal := source, 0
	for {
		brace := strings.IndexByte(rest[literal:], '{')
		if brace < 0 {
			t.pieces = append(t.pieces, piece{literal: rest})
			return t, nil
		}
		literal += brace
		name, closed := nameAt(rest[literal+1:])
		known := slices.Contains(names, name)
		switch {
		case closed && known:
			t.pieces = append(t.pieces, piece{rest[:literal], name})
			rest = rest[literal+len(name)+2:]
			literal = 0
		case closed && name != "":
			return Template{}, fmt.Errorf("there is no value {%s}; there are {%s}", name, strings.Join(names, "}, {"))
		case known:
			return Template{}, fmt.Errorf("{%s lacks its closing brace", name)
		default:
			literal++
		}
	}
}

// Append appends the template to dst. For each place it calls value, which appends the value of that name.
func (t Template) Append(dst []byte, value func(dst []byte, name string) []byte) []byte {
	for _, p := range t.pieces {
		dst = append(dst, p.literal...)
		if p.name != "" {
			dst = value(dst, p.name)
		}
	}
	return dst
}

// Constant returns the number of bytes of the template outside values.
func (t Template) Constant() int {
	n := 0
	for _, p := range t.pieces {
		n += len(p.literal)
	}
	return n
}

// Places returns the number of places for the value of that name.
func (t Template) Places(name string) (n int) {
	for _, p := range t.pieces {
		if p.name == name {
			n++
		}
	}
	return n
}

// nameAt returns the name at the beginning of s, and whether a closing brace follows.
func nameAt(s string) (name string, closed bool) {
	n := len(s) - len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyz_"))
	return s[:n], n < len(s) && s[n] == '}'
}
