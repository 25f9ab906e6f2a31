package resource

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/varve-dev/varve/internal/rawjson"
)

// object is the JSON object that a call's arguments are.
type object struct {
	data  []byte
	start int
}

// parse reads arguments that are one JSON object. As Python does, it takes NaN, Infinity and -Infinity for numbers.
func parse(arguments []byte) (object, bool) {
	if o, ok := parseJSON(arguments); ok {
		return o, true
	}
	return parseJSON(withoutConstants(arguments))
}

func parseJSON(text []byte) (object, bool) {
	if rawjson.Check(text, rawjson.Limits{}) != nil {
		return object{}, false
	}
	start := rawjson.Start(text)
	return object{text, start}, text[start] == '{'
}

// withoutConstants replaces Python's constants that JSON lacks by null, which counts as little; nil if there are none.
// A minus stays behind nothing, so that -NaN is as wrong as in Python.
func withoutConstants(arguments []byte) []byte {
	if !bytes.Contains(arguments, []byte("NaN")) && !bytes.Contains(arguments, []byte("Infinity")) {
		return nil
	}
	var out []byte
	for i := 0; i < len(arguments); {
		rest := arguments[i:]
		switch {
		case rest[0] == '"':
			end := stringEnd(rest)
			out, i = append(out, rest[:end]...), i+end
		case bytes.HasPrefix(rest, []byte("NaN")):
			out, i = append(out, "null"...), i+len("NaN")
		case bytes.HasPrefix(rest, []byte("-Infinity")):
			out, i = append(out, "null"...), i+len("-Infinity")
		case bytes.HasPrefix(rest, []byte("Infinity")):
			out, i = append(out, "null"...), i+len("Infinity")
		default:
			out, i = append(out, rest[0]), i+1
		}
	}
	return out
}

// stringEnd returns the end of the string literal that s begins with, or of s.
func stringEnd(s []byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// values puts the members whose names index has into found: the last of each name, as JSON parsers do. What is missing
// stays the zero Span.
func (o object) values(index map[string]int, found []rawjson.Span) {
	for key, value := range rawjson.Members(o.data, o.start) {
		name := key.Of(o.data)
		inner := name[1 : len(name)-1]
		if bytes.IndexByte(inner, '\\') >= 0 {
			inner, _ = rawjson.Unquote(nil, name)
		}
		if i, ok := index[string(inner)]; ok {
			found[i] = value
		}
	}
}

// text returns the member of that name if it is a string.
func (o object) text(name string) (string, bool) {
	var last rawjson.Span
	for key, value := range rawjson.Members(o.data, o.start) {
		if rawjson.KeyIs(o.data, key, name) {
			last = value
		}
	}
	return o.textAt(last)
}

// textAt returns the value at span if it is a string.
func (o object) textAt(span rawjson.Span) (string, bool) {
	if span.End == 0 || o.data[span.Start] != '"' {
		return "", false
	}
	text, _ := rawjson.Unquote(nil, span.Of(o.data))
	return string(text), true
}

// trim drops what Python's strip drops: Unicode's white space and the four separators of ASCII.
func trim(s string) string { return strings.TrimFunc(s, blank) }

func blank(r rune) bool { return unicode.IsSpace(r) || 0x1C <= r && r <= 0x1F }
