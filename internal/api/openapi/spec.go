package openapi

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// spec is the part of the document that the page shows.
type spec struct {
	Info       struct{ Title, Summary, Description string }
	Tags       []struct{ Name, Description string }
	Paths      ordered[path]
	Components struct {
		SecuritySchemes map[string]struct{ Description string } `yaml:"securitySchemes"`
		Parameters      map[string]parameter
		Headers         map[string]header
		RequestBodies   map[string]body `yaml:"requestBodies"`
		Responses       map[string]response
		Schemas         ordered[schema]
	}
}

// ordered is a mapping in the order of the document.
type ordered[T any] []entry[T]

type entry[T any] struct {
	Name  string
	Value T
}

// UnmarshalYAML reads a mapping.
func (o *ordered[T]) UnmarshalYAML(n *yaml.Node) error {
	for i := 0; i < len(n.Content); i += 2 {
		e := entry[T]{Name: n.Content[i].Value}
		if err := n.Content[i+1].Decode(&e.Value); err != nil {
			return err
		}
		*o = append(*o, e)
	}
	return nil
}

type path struct {
	Parameters                    []parameter
	Get, Put, Post, Patch, Delete *operation
}

type operation struct {
	ID                   string `yaml:"operationId"`
	Tags                 []string
	Summary, Description string
	Parameters           []parameter
	Body                 *body `yaml:"requestBody"`
	Responses            ordered[response]
	Security             *[]any
}

type parameter struct {
	Ref         string `yaml:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      schema
}

type header struct {
	Ref         string `yaml:"$ref"`
	Description string
	Schema      schema
}

type body struct {
	Ref         string `yaml:"$ref"`
	Description string
	Required    bool
	Content     ordered[media]
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Headers     ordered[header]
	Content     ordered[media]
}

type media struct {
	Schema  *schema
	Example yaml.Node
}

// schema is a JSON Schema.
type schema struct {
	Ref                  string `yaml:"$ref"`
	Type                 types
	Description          string
	Const                *string
	Enum                 []string
	Properties           ordered[schema]
	Required             []string
	Items                *schema
	AllOf                []schema `yaml:"allOf"`
	AnyOf                []schema `yaml:"anyOf"`
	OneOf                []schema `yaml:"oneOf"`
	Minimum, Maximum     *string
	MinItems             *string `yaml:"minItems"`
	MaxItems             *string `yaml:"maxItems"`
	MaxLength            *string `yaml:"maxLength"`
	Format, Pattern      string
	Default              yaml.Node
	AdditionalProperties additional `yaml:"additionalProperties"`
}

// types is a type, or several.
type types []string

// UnmarshalYAML reads a word or a list of words.
func (t *types) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = types{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// additional is the schema of other members: nil if there are none, or if they are not described.
type additional struct{ *schema }

// UnmarshalYAML reads false or a schema.
func (a *additional) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return nil
	}
	return n.Decode(&a.schema)
}

// name returns the last step of a reference.
func name(reference string) string { return reference[strings.LastIndexByte(reference, '/')+1:] }

// Requires reports whether a member has to be there.
func (s schema) Requires(member string) bool { return slices.Contains(s.Required, member) }

// Inner returns the schemas whose members are shown as a part of this one.
func (s schema) Inner() (inner []schema) {
	if s.Items != nil {
		inner = append(inner, *s.Items)
	}
	if s.AdditionalProperties.schema != nil {
		inner = append(inner, *s.AdditionalProperties.schema)
	}
	return slices.Concat(inner, s.AllOf, s.AnyOf, s.OneOf)
}

// Limits describes the valid values.
func (s schema) Limits() string {
	var words []string
	span := func(what string, minimum, maximum *string) {
		switch {
		case minimum != nil && maximum != nil:
			words = append(words, fmt.Sprintf("%s to %s%s", *minimum, *maximum, what))
		case maximum != nil:
			words = append(words, fmt.Sprintf("at most %s%s", *maximum, what))
		case minimum != nil:
			words = append(words, fmt.Sprintf("at least %s%s", *minimum, what))
		}
	}
	span("", s.Minimum, s.Maximum)
	span(" entries", s.MinItems, s.MaxItems)
	span(" characters", nil, s.MaxLength)
	if !s.Default.IsZero() {
		words = append(words, "default "+string(appendJSON(nil, &s.Default)))
	}
	return strings.Join(words, ", ")
}
