package resource

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"

	"github.com/varve-dev/varve/internal/rawjson"
)

// object is the JSON object that a call's arguments are.
type object struct {
	data  []byte
	start int
}

// parse reads arguments that are one JSON object. Like Python, it accepts NaN, Infinity and -Infinity as numbers.
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

// constants matches Python's constants that JSON lacks, and string literals, in which they are text.
var constants = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"?|NaN|-?Infinity`)

// withoutConstants returns arguments with null for Python's constants, or nil if there are none. It does not replace
// the minus of -NaN, which is wrong in Python, too.
func withoutConstants(arguments []byte) []byte {
	if !bytes.Contains(arguments, []byte("NaN")) && !bytes.Contains(arguments, []byte("Infinity")) {
		return nil
	}
	return constants.ReplaceAllFunc(arguments, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return []byte("null")
	})
}

// members returns the values of an object's members by name: the last one of each name, as JSON parsers do.
func (o object) members() map[string]rawjson.Span {
	found := map[string]rawjson.Span{}
	for key, value := range rawjson.Members(o.data, o.start) {
		name, _ := o.textAt(key)
		found[name] = value
	}
	return found
}

// textAt returns the value at span if it is a string. The zero Span, which a missing member has, is none.
func (o object) textAt(span rawjson.Span) (string, bool) {
	if span.End == 0 || o.data[span.Start] != '"' {
		return "", false
	}
	text, _ := rawjson.Unquote(nil, span.Of(o.data))
	return string(text), true
}

// trim returns s without what Python's strip removes: Unicode's white space and the four separators of ASCII.
func trim(s string) string { return strings.TrimFunc(s, blank) }

func blank(r rune) bool { return unicode.IsSpace(r) || 0x1C <= r && r <= 0x1F }
