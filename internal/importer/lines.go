package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
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

// values splits a line into its JSON values: one, or several that were run together by writers that did not end their lines.
func values(line []byte) ([]json.RawMessage, error) {
	if json.Valid(line) {
		return []json.RawMessage{bytes.TrimSpace(line)}, nil
	}
	var found []json.RawMessage
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
