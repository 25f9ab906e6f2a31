package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// values splits a line into its JSON values: one, or several if the writer did not end its lines. They are valid JSON;
// nothing else in this package checks that again.
func values(line []byte) ([][]byte, error) {
	if json.Valid(line) {
		return [][]byte{bytes.TrimSpace(line)}, nil
	}
	var found [][]byte
	decoder := json.NewDecoder(bytes.NewReader(line))
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("the line ends inside a JSON value")
		case err != nil:
			return nil, err
		}
		found = append(found, value)
	}
}

// object is a JSON object's members as they are written. Of a repeated key the last one counts, as it does for every
// common decoder.
type object map[string][]byte

// parseObject returns the members of an object, nil for any other value.
func parseObject(raw []byte) object {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	o := object{}
	for key, value := range rawjson.Members(raw, 0) {
		name, _ := rawjson.Unquote(nil, key.Of(raw))
		o[string(name)] = value.Of(raw)
	}
	return o
}

// parseArray returns the elements of an array, nil for any other value.
func parseArray(raw []byte) [][]byte {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	list := [][]byte{}
	for element := range rawjson.Elements(raw, 0) {
		list = append(list, element.Of(raw))
	}
	return list
}

// elementsOf returns the elements of an array, and any other value as the only one.
func elementsOf(raw []byte) [][]byte {
	if elements := parseArray(raw); elements != nil {
		return elements
	}
	return [][]byte{raw}
}

// object returns the first object that a path leads to, o itself if there is none.
func (o object) object(paths ...string) object {
	for _, path := range paths {
		if inner := parseObject(o.at(path)); inner != nil {
			return inner
		}
	}
	return o
}

// firstElement returns the first element of an array, nil if there is none.
func firstElement(raw []byte) []byte {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '[' {
		for element := range rawjson.Elements(raw, 0) {
			return element.Of(raw)
		}
	}
	return nil
}

// objects yields the elements of an array as objects, with nil for an element that is no object.
func objects(array []byte) iter.Seq[object] {
	return func(yield func(object) bool) {
		for _, raw := range parseArray(array) {
			if !yield(parseObject(raw)) {
				return
			}
		}
	}
}

// at returns what a path leads to: the name of a member, and behind dots those of members in it. "0" is the first
// element of an array.
func (o object) at(path string) []byte {
	name, path, nested := strings.Cut(path, ".")
	raw := o[name]
	for nested {
		name, path, nested = strings.Cut(path, ".")
		if name == "0" {
			raw = firstElement(raw)
		} else {
			raw = parseObject(raw)[name]
		}
	}
	return raw
}

// text returns what the path leads to if it is a string, else "".
func (o object) text(path string) string { return stringValue(o.at(path)) }

func (o object) is(path string) bool { return string(o.at(path)) == "true" }

func (o object) has(path string) bool { return has(o.at(path)) }

// first returns the first value that a path leads to and that is not null, nil if there is none: versions of a program
// name a member differently.
func (o object) first(paths ...string) []byte {
	for _, path := range paths {
		if raw := o.at(path); has(raw) {
			return raw
		}
	}
	return nil
}

func has(raw []byte) bool { return len(raw) > 0 && string(raw) != "null" }

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// unquoted returns the text of a string literal, nil for any other value.
func unquoted(raw []byte) []byte {
	if !isString(raw) {
		return nil
	}
	text, _ := rawjson.Unquote(nil, raw)
	return text
}

// stringValue returns the same as a string.
func stringValue(raw []byte) string { return string(unquoted(raw)) }

// nonEmpty returns the value if it is a string that is not empty, else nil.
func nonEmpty(raw []byte) []byte {
	if isString(raw) && len(raw) > len(`""`) {
		return raw
	}
	return nil
}

// inString returns a value as a string literal: a string as it stands, any other as its JSON, without the file's
// layout, and nothing as "".
func inString(raw []byte) []byte {
	if raw = or(raw, `""`); isString(raw) {
		return raw
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, raw) // what is no JSON has never come this far
	return quote(compact.String())
}

// boolean writes a JSON boolean.
func boolean(b bool) []byte { return strconv.AppendBool(nil, b) }

// or returns a value, or the fallback if it is not there or null.
func or[T string | []byte](value []byte, fallback T) []byte {
	if has(value) {
		return value
	}
	return []byte(fallback)
}

// concat joins string literals to one. A character whose surrogates two of them share becomes whole again.
func concat(literals ...[]byte) []byte {
	out := []byte{'"'}
	for _, l := range literals {
		if isString(l) {
			out = append(out, l[1:len(l)-1]...)
		}
	}
	return append(out, '"')
}

// fill puts JSON values where a template of JSON has a %, as they stand.
func fill(template string, values ...[]byte) []byte {
	size := len(template)
	for _, v := range values {
		size += len(v)
	}
	out := make([]byte, 0, size)
	for _, v := range values {
		before, after, _ := strings.Cut(template, "%")
		out = append(append(out, before...), v...)
		template = after
	}
	return append(out, template...)
}

// member writes a further member of an object, nothing if the value is not there.
func member(name string, value []byte) []byte {
	if value == nil {
		return nil
	}
	return fill(`,%:%`, quote(name), value)
}

// quote writes a string of this package as a JSON string.
func quote(text string) []byte { return rawjson.Quote(nil, []byte(text)) }

// list writes an array of these elements.
func list(elements [][]byte) []byte { return fill("[%]", bytes.Join(elements, []byte{','})) }

// inBraces writes an object of these members.
func inBraces(members [][]byte) []byte { return fill("{%}", bytes.Join(members, []byte{','})) }

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}
