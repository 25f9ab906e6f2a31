package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// UnsupportedError is the error for a file that cannot be imported, with what it seems to be.
type UnsupportedError struct{ Found string }

func (e *UnsupportedError) Error() string {
	titles := make([]string, len(sources))
	for i, s := range sources {
		titles[i] = s.title
	}
	last := len(titles) - 1
	return fmt.Sprintf(
		"this is %s; what can be imported is %s, and %s (a provider's as a JSON array, a request, a response, or both)",
		e.Found, strings.Join(titles[:last], ", "), titles[last],
	)
}

// Detect returns the kind of a file by its content, or an *UnsupportedError.
func Detect(data []byte) (Source, error) {
	if !json.Valid(data) {
		return detectLines(data)
	}
	if found := recognise(newSample(data, false)); found != Auto {
		return found, nil
	}
	return "", &UnsupportedError{Found: describe(data)}
}

// detectLines decides by the first line of which a source is sure, without such a line by the first that is likely.
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
			likely = firstSource(func(source source) bool { return source.likely != nil && source.likely(s) }).name
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
		err := rawjson.Check(data, rawjson.Limits{})
		return "", &UnsupportedError{Found: fmt.Sprintf("not JSON (%v), nor lines of JSON", err)}
	}
	return "", &UnsupportedError{Found: "an empty file"}
}

func newSample(value []byte, line bool) sample {
	s := sampleOf(parseObject(value))
	s.line = line
	s.members = s.object
	if s.object == nil {
		s.messages = parseArray(value)
		s.members = object{"0": firstElement(value)}
	}
	s.format, _ = tell(s)
	return s
}

// sampleOf returns the part of a sample that tell needs.
func sampleOf(o object) sample { return sample{object: o, messages: parseArray(o["messages"])} }

// recognise returns the first source that is sure of a sample, Auto if none is.
func recognise(s sample) Source {
	return firstSource(func(source source) bool { return source.detect(s) }).name
}

// marked returns a source's detect, which recognises a value that meets all conditions of a pattern. A condition is
// "name" for a member that must be there, "a|b" for one of several members, "list[]" for an array, "name=a|b" for a
// string that must be one of these, and "!name" for a member that must not be there. A name may be a path: "0.name" is
// a member of the first element of an array.
func marked(patterns ...string) func(s sample) bool {
	return func(s sample) bool { return slices.ContainsFunc(patterns, s.members.fits) }
}

func (o object) fits(pattern string) bool {
	for condition := range strings.FieldsSeq(pattern) {
		if !o.meets(condition) {
			return false
		}
	}
	return o != nil
}

// meets reports whether an object meets one condition of a pattern.
func (o object) meets(condition string) bool {
	if name, values, ok := strings.Cut(condition, "="); ok {
		value := o.text(name)
		return value != "" && slices.Contains(strings.Split(values, "|"), value)
	}
	if name, ok := strings.CutPrefix(condition, "!"); ok {
		return !o.has(name)
	}
	if name, ok := strings.CutSuffix(condition, "[]"); ok {
		return parseArray(o.at(name)) != nil
	}
	return o.first(strings.Split(condition, "|")...) != nil
}

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
