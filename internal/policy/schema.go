package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Schema returns the JSON Schema (2020-12) of a policy as callers send it: every field may be left out or null. It
// holds what a schema can express; the contradictions of rules.go come on top.
func Schema() []byte {
	root := append(object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "Varve policy"},
	}, objectSchema(reflect.ValueOf(Default()), "")...)
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // it holds only strings, numbers and booleans
	}
	return append(text, '\n')
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, "%q:%s", m.name, value)
	}
	return append(text, '}'), nil
}

// objectSchema describes a policy or one of its sections, whose values are the defaults.
func objectSchema(section reflect.Value, pointer string) object {
	properties := object{}
	for i, name := range fieldsOf(section.Type()) {
		value, below := section.Field(i), pointer+"/"+name
		if value.Kind() == reflect.Struct {
			properties = append(properties, member{name, objectSchema(value, below)})
			continue
		}
		leaf := append(object{{"description", fields[below].Does}}, orNull(value.Type(), below)...)
		if value.Kind() != reflect.Map {
			leaf = append(leaf, member{"default", value.Interface()})
		}
		properties = append(properties, member{name, leaf})
	}
	return object{
		{"type", []string{"object", "null"}},
		{"properties", properties},
		{"additionalProperties", false},
	}
}

// orNull describes a value that may be null, too.
func orNull(t reflect.Type, pointer string) object {
	s := valueSchema(t, pointer)
	for i := range s {
		switch value := s[i].value.(type) {
		case []string: // the member "type"
			s[i].value = append(value, "null")
		case []any: // the member "enum"
			s[i].value = append(value, nil)
		}
	}
	return s
}

// valueSchema describes the value of a field, or an entry of its list or table.
func valueSchema(t reflect.Type, pointer string) object {
	switch t.Kind() {
	case reflect.Bool:
		return object{{"type", []string{"boolean"}}}
	case reflect.Int:
		return numberSchema("integer", fields[pointer])
	case reflect.Float64:
		return numberSchema("number", fields[pointer])
	case reflect.Slice:
		return object{
			{"type", []string{"array"}},
			{"items", valueSchema(t.Elem(), pointer)},
			{"maxItems", maxListed},
		}
	case reflect.Map:
		return object{
			{"type", []string{"object"}},
			{"propertyNames", object{{"minLength", 1}, {"maxLength", maxNameBytes}}},
			{"maxProperties", maxTools},
			{"additionalProperties", orNull(t.Elem(), pointer)},
		}
	}
	return stringSchema(choicesOf(t, pointer), fields[pointer])
}

func stringSchema(choices []string, f field) object {
	s := object{{"type", []string{"string"}}}
	if choices != nil {
		enum := make([]any, len(choices))
		for i, choice := range choices {
			enum[i] = choice
		}
		return append(s, member{"enum", enum})
	}
	if !f.Empty {
		s = append(s, member{"minLength", 1})
	}
	return append(s, member{"maxLength", f.Bytes}) // in characters, of which a text has no more than bytes
}

// numberSchema describes the range of a number, beside which 0 may be allowed.
func numberSchema(kind string, f field) object {
	s := object{{"type", []string{kind}}}
	limits := object{{"minimum", f.Low}, {"maximum", f.High}}
	if f.OrZero {
		return append(s, member{"anyOf", []object{{{"const", 0}}, limits}})
	}
	return append(s, limits...)
}
