package importer

import (
	"encoding/json"
	"slices"
	"strings"
)

// detect returns the kind of a file by its content, or an *UnsupportedError.
func detect(data []byte) (Source, error) {
	if !json.Valid(data) {
		return detectLines(data)
	}
	s := newSample(data, false)
	if found := recognise(s); found != Auto {
		return found, nil
	}
	if isMessage(s.object) {
		if format, _ := tellList([][]byte{data}); format != "" {
			return Source(format), nil
		}
	}
	if kind := foreignKind(s); kind != "" {
		return "", &UnsupportedError{Found: kind, Missing: notImported}
	}
	return "", &UnsupportedError{Found: describe(data), Missing: missing(s)}
}

// lineKinds is what the lines of a file are, as far as no source is sure of one.
type lineKinds struct {
	first    *sample  // the first value
	messages [][]byte // the values that are messages, if no broken line is before them
	likely   Source   // the first that finds a line likely, or Auto
	others   int      // lines that are no messages
	broken   int      // lines that are not JSON
}

// detectLines decides by the first line of which a source is sure, without such a line by the first that is likely,
// unless all lines are messages.
func detectLines(data []byte) (Source, error) {
	var all lineKinds
	for _, line := range lines(data) {
		if found := all.add(line); found != Auto {
			return found, nil
		}
	}
	format, _ := tellList(all.messages)
	switch {
	case format != "" && (all.others == 0 || all.likely == Auto):
		return Source(format), nil
	case all.likely != Auto:
		return all.likely, nil
	case all.first != nil && foreignKind(*all.first) != "":
		return "", &UnsupportedError{Found: foreignKind(*all.first), Missing: notImported}
	case all.first != nil && all.first.object != nil:
		found := "a file of JSON lines with " + memberList(all.first.object)
		return "", &UnsupportedError{Found: found, Missing: missing(*all.first)}
	case all.first != nil:
		return "", &UnsupportedError{Found: "a file of JSON lines that are no objects"}
	case all.broken > 0:
		return "", notJSON(data)
	}
	return "", &UnsupportedError{Found: "an empty file"}
}

// add returns the source that is sure of a line, Auto if none is.
func (k *lineKinds) add(line []byte) Source {
	found, err := values(line)
	if err != nil {
		k.broken++
		return Auto
	}
	s := newSample(found[0], true)
	if sure := recognise(s); sure != Auto {
		return sure
	}
	if k.likely == Auto {
		k.likely = firstSource(func(source source) bool { return source.likely != nil && source.likely(s) }).name
	}
	if isMessage(s.object) && k.broken == 0 {
		k.messages = append(k.messages, found...)
	} else {
		k.others++
	}
	if k.first == nil {
		k.first = &s
	}
	return Auto
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
