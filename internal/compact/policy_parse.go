package compact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// ParsePolicy merges a JSON document over the default policy: a field that is missing or null has its default, and so
// has a tool in categories. The error is a *session.InvalidError with every problem of the document.
func ParsePolicy(document []byte) (Policy, error) {
	p := policyParser{document: document, policy: DefaultPolicy()}
	if len(bytes.TrimSpace(document)) > 0 {
		if err := rawjson.Check(document, rawjson.Limits{Depth: session.MaxJSONDepth, Nodes: session.MaxJSONNodes}); err != nil {
			return Policy{}, session.Invalid("", "invalid_json", "the policy is no JSON: %s", err)
		}
		p.value(rawjson.Value(document), reflect.ValueOf(&p.policy).Elem(), "")
	}
	p.rules()
	if len(p.problems) > 0 {
		return Policy{}, &session.InvalidError{Code: "invalid_policy", Problems: p.problems}
	}
	return p.policy, nil
}

// policyParser collects problems on its way through a document; what has one keeps its default.
type policyParser struct {
	document []byte
	policy   Policy
	problems []session.Problem
}

func (p *policyParser) problem(pointer, code, format string, args ...any) {
	p.problems = append(p.problems, session.Problem{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format, args...)})
}

func (p *policyParser) value(at rawjson.Span, into reflect.Value, pointer string) {
	text := at.Of(p.document)
	if string(text) == "null" {
		return
	}
	switch {
	case into.Kind() == reflect.Struct:
		p.object(at, into, pointer)
	case into.Type() == reflect.TypeFor[map[string]Category]():
		p.categories(at, into.Interface().(map[string]Category), pointer)
	default:
		decoded := reflect.New(into.Type())
		if err := json.Unmarshal(text, decoded.Interface()); err != nil || hasNull(text) {
			p.problem(pointer, "wrong_type", "%s is no %s", abridged(text), typeName(into.Type()))
			return
		}
		into.Set(decoded.Elem())
	}
}

func (p *policyParser) object(at rawjson.Span, into reflect.Value, pointer string) {
	fields := fieldsOf(into.Type())
	for key, value := range p.members(at, pointer) {
		i := slices.Index(fields, key)
		if i < 0 {
			p.problem(pointer+"/"+escaped(key), "unknown_field", "there is no field %q here%s", key, suggestion(key, fields))
			continue
		}
		p.value(value, into.Field(i), pointer+"/"+key)
	}
}

func (p *policyParser) categories(at rawjson.Span, into map[string]Category, pointer string) {
	for tool, value := range p.members(at, pointer) {
		text := value.Of(p.document)
		var category Category
		if string(text) == "null" {
			delete(into, tool)
			continue
		}
		if err := json.Unmarshal(text, &category); err != nil || !slices.Contains(categories, category) {
			p.problem(pointer+"/"+escaped(tool), "unknown_category", "%s is none of rereadable, non-reproducible, ephemeral, computational", abridged(text))
			continue
		}
		into[tool] = category
	}
}

// members yields each member of an object once; one that is repeated is a problem, and so is anything but an object.
func (p *policyParser) members(at rawjson.Span, pointer string) func(yield func(string, rawjson.Span) bool) {
	return func(yield func(string, rawjson.Span) bool) {
		if p.document[at.Start] != '{' {
			p.problem(pointer, "wrong_type", "%s is no object", abridged(at.Of(p.document)))
			return
		}
		seen := map[string]bool{}
		for key, value := range rawjson.Members(p.document, at.Start) {
			text, _ := rawjson.Unquote(nil, key.Of(p.document))
			name := string(text)
			if seen[name] {
				p.problem(pointer+"/"+escaped(name), "repeated_field", "%q stands here twice; leave one", name)
				continue
			}
			seen[name] = true
			if !yield(name, value) {
				return
			}
		}
	}
}

// hasNull reports whether an array has null for an element, which the decoder would take for an empty string.
func hasNull(text []byte) bool {
	var elements []any
	return json.Unmarshal(text, &elements) == nil && slices.Contains(elements, nil)
}

func fieldsOf(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean: write true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	return "array of strings"
}

// escaped writes a key as a token of a JSON pointer (RFC 6901).
func escaped(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

func abridged(text []byte) string {
	if len(text) > 60 {
		return string(firstChars(text, 60)) + "…"
	}
	return string(text)
}

// suggestion names the field that was probably meant.
func suggestion(key string, fields []string) string {
	best := slices.MinFunc(fields, func(a, b string) int { return distance(key, a) - distance(key, b) })
	if distance(key, best) <= max(2, len(best)/3) {
		return fmt.Sprintf("; %q was probably meant", best)
	}
	return "; there are " + strings.Join(fields, ", ")
}

// distance is the number of bytes to insert, delete or change to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
