package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// Schema returns the JSON Schema (2020-12) of a policy as callers send it: every field may be left out or null. It
// holds what a schema can say; the contradictions of rules.go come on top.
func Schema() []byte {
	root := objectSchema(reflect.ValueOf(Default()), "")
	root.Schema, root.Title = "https://json-schema.org/draft/2020-12/schema", "Varve policy"
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // it holds nothing that JSON has not
	}
	return append(text, '\n')
}

// schema is the part of JSON Schema that policies need.
type schema struct {
	Schema        string           `json:"$schema,omitempty"`
	Title         string           `json:"title,omitempty"`
	Description   string           `json:"description,omitempty"`
	Type          []string         `json:"type,omitempty"`
	Enum          []any            `json:"enum,omitempty"`
	AnyOf         []schema         `json:"anyOf,omitempty"`
	Const         *int             `json:"const,omitempty"`
	Minimum       *float64         `json:"minimum,omitempty"`
	Maximum       *float64         `json:"maximum,omitempty"`
	MinLength     int              `json:"minLength,omitempty"`
	MaxLength     int              `json:"maxLength,omitempty"`
	Items         *schema          `json:"items,omitempty"`
	MaxItems      int              `json:"maxItems,omitempty"`
	Properties    schemaProperties `json:"properties,omitempty"`
	PropertyNames *schema          `json:"propertyNames,omitempty"`
	MaxProperties int              `json:"maxProperties,omitempty"`
	Additional    any              `json:"additionalProperties,omitempty"` // false, or a schema
	Default       any              `json:"default,omitempty"`
}

// schemaProperties keeps the order of the fields.
type schemaProperties []schemaProperty

type schemaProperty struct {
	name string
	schema
}

// MarshalJSON writes an object.
func (p schemaProperties) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	for i, property := range p {
		value, err := json.Marshal(property.schema)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%c%q:%s", "{,"[min(i, 1)], property.name, value)
	}
	return append(text.Bytes(), '}'), nil
}

func objectSchema(v reflect.Value, pointer string) schema {
	s := schema{Type: []string{"object", "null"}, Additional: false}
	for i, name := range fieldsOf(v.Type()) {
		below := pointer + "/" + name
		if v.Field(i).Kind() == reflect.Struct {
			s.Properties = append(s.Properties, schemaProperty{name, objectSchema(v.Field(i), below)})
			continue
		}
		f := fields[below]
		leaf := valueSchema(v.Type().Field(i).Type, below, f)
		leaf.Description = f.does
		if leaf.Type = append(leaf.Type, "null"); leaf.Enum != nil {
			leaf.Enum = append(leaf.Enum, nil)
		}
		if v.Field(i).Kind() != reflect.Map {
			leaf.Default = v.Field(i).Interface()
		}
		s.Properties = append(s.Properties, schemaProperty{name, leaf})
	}
	return s
}

func valueSchema(t reflect.Type, pointer string, f field) schema {
	switch t.Kind() {
	case reflect.Bool:
		return schema{Type: []string{"boolean"}}
	case reflect.Int:
		return f.numberSchema("integer")
	case reflect.Float64:
		return f.numberSchema("number")
	case reflect.Slice:
		items := valueSchema(t.Elem(), pointer, f)
		return schema{Type: []string{"array"}, Items: &items, MaxItems: maxListed}
	case reflect.Map:
		value := valueSchema(t.Elem(), pointer, f)
		if value.Type = append(value.Type, "null"); value.Enum != nil {
			value.Enum = append(value.Enum, nil)
		}
		return schema{
			Type: []string{"object"}, Additional: value, MaxProperties: maxTools,
			PropertyNames: &schema{MinLength: 1, MaxLength: maxNameBytes},
		}
	}
	s := schema{Type: []string{"string"}}
	for _, choice := range choicesOf(t, pointer) {
		s.Enum = append(s.Enum, choice)
	}
	if s.Enum == nil {
		s.MaxLength = f.bytes // of characters, of which there are no more than bytes
		if !f.empty {
			s.MinLength = 1
		}
	}
	return s
}

// numberSchema writes the range, beside which 0 may be possible.
func (f field) numberSchema(kind string) schema {
	s := schema{Type: []string{kind}}
	if f.orZero {
		s.AnyOf = []schema{{Const: new(int)}, {Minimum: &f.low, Maximum: &f.high}}
	} else {
		s.Minimum, s.Maximum = &f.low, &f.high
	}
	return s
}
