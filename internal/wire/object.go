package wire

import (
	"bytes"
	"iter"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
)

// object is the members of a JSON object, by name. Of repeated names the last one counts, as it does for JSON parsers.
// It holds the first few in place, which is nearly always all of them, and the rest in a map, so that the names of an
// object of thousands of members are not compared pair by pair.
type object struct {
	n      int
	first  [10]field
	rest   map[string]Span
	unlike bool // a name is repeated, or not kept as it is written in the text
}

type field struct {
	name  []byte // without quotes, and without escapes that it does not need
	value Span
}

// set adds a member, and reports whether its name was new.
func (o *object) set(body []byte, key, value Span) bool {
	name := body[key.Start+1 : key.End-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = rawjson.AppendCanonical(nil, key.Of(body))
		name = name[1 : len(name)-1]
		o.unlike = true
	}
	for i := range o.first[:o.n] {
		if f := &o.first[i]; bytes.Equal(f.name, name) {
			f.value = value
			o.unlike = true
			return false
		}
	}
	if o.n < len(o.first) {
		o.first[o.n] = field{name, value}
		o.n++
		return true
	}
	if o.rest == nil {
		o.rest = map[string]Span{}
	}
	_, known := o.rest[string(name)]
	o.rest[string(name)] = value
	return !known
}

// at returns the value of a member, the zero Span if it is missing.
func (o *object) at(name string) Span {
	for i := range o.first[:o.n] {
		if f := &o.first[i]; string(f.name) == name {
			return f.value
		}
	}
	return o.rest[name]
}

// endOf returns where the value of a member that starts at start ends, 0 for no member's.
func (o *object) endOf(start int) int {
	for i := range o.first[:o.n] {
		if at := o.first[i].value; at.Start == start {
			return at.End
		}
	}
	return 0
}

// either returns the value of a member that has two names.
func (o *object) either(name, other string) Span {
	if at := o.at(name); at != (Span{}) {
		return at
	}
	return o.at(other)
}

// onlyHas reports whether an object has no members but those of these names.
func (o *object) onlyHas(names []string) bool {
	for i := range o.first[:o.n] {
		if !slices.Contains(names, string(o.first[i].name)) {
			return false
		}
	}
	return len(o.rest) == 0
}

// others returns what othersOf returns of the object, whose text is in body. It reads the text again only if it must.
func (o *object) others(body []byte, names []string) (others []byte) {
	if o.unlike || o.rest != nil {
		return othersOf(body, names...)
	}
	for i := range o.first[:o.n] {
		if f := &o.first[i]; !slices.Contains(names, string(f.name)) {
			others = slices.Grow(others, len(`,"":`)+len(f.name)+f.value.End-f.value.Start)
			others = wrap(separate(others, 0), `"`, f.name, `":`)
			others = append(others, f.value.Of(body)...)
		}
	}
	return others
}

// othersOf returns the members of an object that have none of these names, joined by commas.
func othersOf(object []byte, names ...string) (others []byte) {
	return appendMembers(nil, object, false, names)
}

// appendMembers appends the members of an object that have one of the names, or those that have none of them. A comma
// separates them, also from what is in dst.
func appendMembers(dst, object []byte, named bool, names []string) []byte {
	if object == nil {
		return dst
	}
	for key, value := range rawjson.Members(object, rawjson.Start(object)) {
		is := func(name string) bool { return rawjson.KeyIs(object, key, name) }
		if slices.ContainsFunc(names, is) == named {
			dst = append(separate(dst, 0), key.Of(object)...)
			dst = wrap(dst, ":", value.Of(object), "")
		}
	}
	return dst
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

// elementsOf yields the elements of the array that a member is. Any other member has none.
func elementsOf(object []byte, name string) iter.Seq[[]byte] {
	return func(yield func(element []byte) bool) {
		array := member(object, name)
		if array == (Span{}) || object[array.Start] != '[' {
			return
		}
		rawjson.Elements(object, array.Start)(func(at Span) bool { return yield(at.Of(object)) })
	}
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
	return wrap(nil, "{", othersOf(object, names...), "}")
}

// setMember returns the object with a value as its member of a name, behind the others.
func setMember(object []byte, name string, value []byte) []byte {
	dst := append([]byte{'{'}, othersOf(object, name)...)
	dst = wrap(separate(dst, 1), `"`, name, `":`)
	return wrap(dst, "", value, "}")
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
