package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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

// text returns the member if it is a string, else "".
func (o object) text(name string) string {
	if !isString(o[name]) {
		return ""
	}
	s, _ := rawjson.Unquote(nil, o[name])
	return string(s)
}

// is reports whether the member is true.
func (o object) is(name string) bool { return string(o[name]) == "true" }

// has reports whether the member is there and not null.
func (o object) has(name string) bool { return len(o[name]) > 0 && string(o[name]) != "null" }

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

// quote writes a string of ours as a JSON string.
func quote(text string) []byte { return rawjson.Quote(nil, []byte(text)) }

// list writes a JSON array.
func list(elements [][]byte) []byte {
	return fill("[%]", bytes.Join(elements, []byte{','}))
}

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }
