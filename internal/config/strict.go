package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/spelling"
)

// readStrict reads a JSON document into a struct of structs, maps of structs and values. The error names every member
// that is unknown, is there twice, or has the wrong type, by its place, and repeats no value: any may be a key.
func readStrict(document []byte, into any) error {
	if err := rawjson.Check(document, rawjson.Limits{}); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	s := &strict{document: document}
	s.value("", rawjson.Value(document), reflect.ValueOf(into).Elem())
	return errors.Join(s.problems...)
}

type strict struct {
	document []byte
	problems []error
}

func (s *strict) wrong(place, format string, args ...any) {
	if place == "" {
		place = "/"
	}
	s.problems = append(s.problems, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...)))
}

// value reads the value at a place.
func (s *strict) value(place string, at rawjson.Span, into reflect.Value) {
	_, readsItself := into.Addr().Interface().(json.Unmarshaler)
	kind := into.Kind()
	if kind != reflect.Struct && kind != reflect.Map || readsItself {
		if json.Unmarshal(at.Of(s.document), into.Addr().Interface()) != nil {
			s.wrong(place, "it must be %s, not %s", wanted(into.Type()), found(s.document[at.Start]))
		}
		return
	}
	if s.document[at.Start] != '{' {
		s.wrong(place, "it must be an object, not %s", spelling.KindOf(s.document[at.Start]))
		return
	}
	seen := map[string]bool{}
	for key, member := range rawjson.Members(s.document, at.Start) {
		text, _ := rawjson.Unquote(nil, key.Of(s.document))
		name := string(text)
		below := place + "/" + spelling.EscapePointer(spelling.Shorten(name))
		if seen[name] {
			s.wrong(below, "it is there twice")
		}
		seen[name] = true
		if kind == reflect.Map {
			s.entry(below, name, member, into)
		} else {
			s.member(below, name, member, into)
		}
	}
}

// entry reads a member of a map.
func (s *strict) entry(place, name string, at rawjson.Span, into reflect.Value) {
	if into.IsNil() {
		into.Set(reflect.MakeMap(into.Type()))
	}
	entry := reflect.New(into.Type().Elem()).Elem()
	s.value(place, at, entry)
	into.SetMapIndex(reflect.ValueOf(name), entry)
}

// member reads a member of a struct.
func (s *strict) member(place, name string, at rawjson.Span, into reflect.Value) {
	known := make([]string, into.NumField())
	for i := range known {
		known[i], _, _ = strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
	}
	i := slices.Index(known, name)
	if i < 0 {
		s.wrong(place, "it is not known here%s", spelling.Hint(name, known))
		return
	}
	s.value(place, at, into.Field(i))
}

// found names the kind of a JSON value by its first byte. A number that cannot be read as one that is wanted has places
// behind its point, or too many before it.
func found(first byte) string {
	if kind := spelling.KindOf(first); kind != "a number" {
		return kind
	}
	return "a fraction or a number as large as this one"
}

// wanted names the kind of JSON value that a type is read from.
func wanted(of reflect.Type) string {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "a string"
}
