package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
)

// pick looks names up in the object that starts at start and puts the spans of their values into values, the zero Span for those that are
// missing. Of repeated keys the last one counts, as it does for JSON parsers, and the message is flagged.
func (s *scanner) pick(start int, names []string, values []Span) {
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

func (s *scanner) index(names []string, key Span) int {
	for i, name := range names {
		if rawjson.KeyIs(s.body, key, name) {
			return i
		}
	}
	return -1
}

// keySet holds the keys of one object: the first few in place, which is nearly always all of them, and the rest in a map,
// so that an object of thousands of keys is not compared pair by pair.
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
