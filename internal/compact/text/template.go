package text

import (
	"fmt"
	"slices"
	"strings"
)

// Template is a text with places for values, written {name}: the wording of a policy. The zero Template is empty.
type Template struct {
	source string
	pieces []piece
}

// piece is a value's place behind the literal text before it; the last piece has no name.
type piece struct{ literal, name string }

// Parse makes a template of source, whose values are those of names. A name is made of lower-case letters and
// underscores. A brace that opens no such {name} is text. The error tells of a {name} that is not one of names, and of
// one that is and lacks its closing brace.
func Parse(source string, names ...string) (Template, error) {
	t := Template{source: source}
	rest, literal := source, 0
	for {
		brace := strings.IndexByte(rest[literal:], '{')
		if brace < 0 {
			t.pieces = append(t.pieces, piece{literal: rest})
			return t, nil
		}
		literal += brace
		name, closed := nameAt(rest[literal+1:])
		switch known := slices.Contains(names, name); {
		case closed && known:
			t.pieces = append(t.pieces, piece{rest[:literal], name})
			rest, literal = rest[literal+len(name)+2:], 0
		case closed && name != "":
			return Template{}, fmt.Errorf("there is no value {%s}; there are {%s}", name, strings.Join(names, "}, {"))
		case known:
			return Template{}, fmt.Errorf("{%s lacks its closing brace", name)
		default:
			literal++
		}
	}
}

// Append writes the template to dst. Where a value stands it calls value, which appends the value of that name.
func (t Template) Append(dst []byte, value func(dst []byte, name string) []byte) []byte {
	for _, p := range t.pieces {
		dst = append(dst, p.literal...)
		if p.name != "" {
			dst = value(dst, p.name)
		}
	}
	return dst
}

// Constant returns how many bytes of the template are no values: its length if every value were empty.
func (t Template) Constant() int {
	n := 0
	for _, p := range t.pieces {
		n += len(p.literal)
	}
	return n
}

// Places returns how often the value of that name stands in the template.
func (t Template) Places(name string) (n int) {
	for _, p := range t.pieces {
		if p.name == name {
			n++
		}
	}
	return n
}

// Has reports whether the template has a place for the value of that name.
func (t Template) Has(name string) bool {
	return slices.ContainsFunc(t.pieces, func(p piece) bool { return p.name == name && name != "" })
}

// String returns what the template was parsed from.
func (t Template) String() string { return t.source }

// nameAt returns the name that s begins with, and whether a closing brace follows.
func nameAt(s string) (name string, closed bool) {
	n := len(s) - len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyz_"))
	return s[:n], n < len(s) && s[n] == '}'
}
