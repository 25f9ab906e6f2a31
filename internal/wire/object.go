package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
)

// pick looks names up in the object that starts at start and puts the spans of their values into values, the zero
// Span for those that are missing. Of repeated keys the last one counts, as it does for JSON parsers, and the message
// is flagged unless only its intermediate representation is wanted.
func (s *scanner) pick(start int, names []string, values []Span) {
	if s.ir != nil {
		s.lookUp(start, names, values)
		return
	}
	var others keySet
	clear(values)
	for key, value := range rawjson.Members(s.body, start) {
		repeated := false
		if i := s.index(names, key); i >= 0 {
			repeated = values[i] != Span{}
			values[i] = value
		} else {
			repeated = !others.add(s.body, key)
		}
		if repeated {
			s.facts.Flags |= FlagDuplicateKeys
		}
	}
}

// lookUp is pick without a look at repeated keys.
func (s *scanner) lookUp(start int, names []string, values []Span) {
	clear(values)
	for key, value := range rawjson.Members(s.body, start) {
		if i := s.index(names, key); i >= 0 {
			values[i] = value
		}
	}
}

// pickMessage is pick for the members of the message itself. The intermediate representation keeps all others as Extra.
func (s *scanner) pickMessage(start int, names []string, values []Span) {
	if s.ir == nil {
		s.pick(start, names, values)
		return
	}
	s.ir.message().Extra = s.members(start, names, values)
}

// members looks names up as pick does, and returns all other members.
func (s *scanner) members(start int, names []string, values []Span) (others []byte) {
	clear(values)
	for key, value := range rawjson.Members(s.body, start) {
		if i := s.index(names, key); i >= 0 {
			values[i] = value
		} else {
			others = appendExtra(others, key.Of(s.body), value.Of(s.body))
		}
	}
	return others
}

// others returns the members of an object that have none of these names.
func (s *scanner) others(start int, names []string) []byte {
	return s.members(start, names, make([]Span, len(names)))
}

// appendExtra appends a member to those of Message.Extra.
func appendExtra(dst, key, value []byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	dst = wrap(dst, "", key, ":")
	return append(dst, value...)
}

func (s *scanner) index(names []string, key Span) int {
	for i, name := range names {
		if rawjson.KeyIs(s.body, key, name) {
			return i
		}
	}
	return -1
}

// inner returns the value of a member inside members, the zero Span if one of them is missing or no object.
func (s *scanner) inner(at Span, path ...string) Span {
	for _, name := range path {
		if !s.is(at, '{') {
			return Span{}
		}
		start := at.Start
		at = Span{}
		for key, value := range rawjson.Members(s.body, start) {
			if rawjson.KeyIs(s.body, key, name) {
				at = value
			}
		}
	}
	return at
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

// without returns the object without the members of a name.
func without(object []byte, name string) []byte {
	s := scanner{body: object}
	return wrap(nil, "{", s.others(0, []string{name}), "}")
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
