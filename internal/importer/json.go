package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/varve-dev/varve/internal/rawjson"
)

// lines yields the lines that are not blank with their numbers. Only \n ends a line: other separators occur inside JSON strings.
func lines(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		n := 0
		for line := range bytes.SplitSeq(data, []byte{'\n'}) {
			n++
			if len(bytes.TrimSpace(line)) > 0 && !yield(n, line) {
				return
			}
		}
	}
}

// values splits a line into its JSON values: one, or several that were run together by a writer that did not end its
// lines. What it returns is JSON; nothing else in this package checks that again.
func values(line []byte) ([][]byte, error) {
	if json.Valid(line) {
		return [][]byte{bytes.TrimSpace(line)}, nil
	}
	var found [][]byte
	decoder := json.NewDecoder(bytes.NewReader(line))
	for {
		var value json.RawMessage
		switch err := decoder.Decode(&value); {
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

// parseObject is nil if raw is no object.
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

// parseArray is nil if raw is no array.
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

// text is the member's string, or "" if it is none.
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

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }
