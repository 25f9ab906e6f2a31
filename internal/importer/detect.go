package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// UnsupportedError says that a file is nothing that can be imported, and what it seems to be.
type UnsupportedError struct{ Found string }

func (e *UnsupportedError) Error() string {
	titles := make([]string, len(sources))
	for i, s := range sources {
		titles[i] = s.title
	}
	last := len(titles) - 1
	return fmt.Sprintf("this is %s; what can be imported is %s, and %s (a provider's as a JSON array, a request, a response, or both)",
		e.Found, strings.Join(titles[:last], ", "), titles[last])
}

// Detect looks at a file's content. An *UnsupportedError says what else it is.
func Detect(data []byte) (Source, error) {
	if !json.Valid(data) {
		return detectLines(data)
	}
	if found := recognise(newSample(data, false)); found != Auto {
		return found, nil
	}
	return "", &UnsupportedError{Found: describe(data)}
}

// detectLines decides by the first line that a source is sure of, and if there is none by the first that is likely one's.
func detectLines(data []byte) (Source, error) {
	var first object
	likely, broken := Auto, 0
	for _, line := range lines(data) {
		found, err := values(line)
		if err != nil {
			broken++
			continue
		}
		s := newSample(found[0], true)
		if found := recognise(s); found != Auto {
			return found, nil
		}
		if likely == Auto {
			likely = guess(s)
		}
		if first == nil {
			first = s.object
		}
	}
	switch {
	case likely != Auto:
		return likely, nil
	case first != nil:
		return "", &UnsupportedError{Found: "a file of JSON lines with " + memberList(first)}
	case broken > 0:
		return "", &UnsupportedError{Found: fmt.Sprintf("not JSON (%v), nor lines of JSON", rawjson.Check(data, rawjson.Limits{}))}
	}
	return "", &UnsupportedError{Found: "an empty file"}
}

func newSample(value []byte, line bool) sample {
	s := sampleOf(parseObject(value))
	s.line = line
	if s.object == nil {
		s.messages = parseArray(value)
	}
	if len(s.messages) > 0 {
		s.first = parseObject(s.messages[0])
	}
	s.format = formatOf(s)
	return s
}

// sampleOf is what tell needs of an object.
func sampleOf(o object) sample { return sample{object: o, messages: parseArray(o["messages"])} }

// recognise names the first source that is sure of a sample.
func recognise(s sample) Source {
	for _, source := range sources {
		if source.detect(s) {
			return source.name
		}
	}
	return Auto
}

// guess names the first source that takes a line for likely its own.
func guess(s sample) Source {
	for _, source := range sources {
		if source.likely != nil && source.likely(s) {
			return source.name
		}
	}
	return Auto
}

// describe says what a document is that nothing is known of.
func describe(data []byte) string {
	if o := parseObject(data); o != nil {
		return "a JSON object with " + memberList(o)
	}
	if list := parseArray(data); len(list) > 0 {
		if o := parseObject(list[0]); o != nil {
			return "a JSON array of objects with " + memberList(o)
		}
		return "a JSON array whose elements are no messages"
	}
	return "a JSON value without messages"
}

func memberList(o object) string {
	names := slices.Sorted(maps.Keys(o))
	more := ""
	if len(names) > 6 {
		more = fmt.Sprintf(" and %d more", len(names)-6)
		names = names[:6]
	}
	if len(names) == 0 {
		return "no members"
	}
	return "the members " + strings.Join(names, ", ") + more
}
