// Package apitest holds what tests of the HTTP API need: its description, to which each exchange is held, and a world
// for the tests of features.
package apitest

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/features"
)

// Description is the API's description as tests hold the API to it.
type Description struct {
	Root       map[string]any
	Operations []Operation

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by pointer
}

// Operation is an operation of the description.
type Operation struct {
	Method, Path string
	At           string // pointer to it
	Value        map[string]any
	Parameters   []Part
}

// Part is a part of the description and the pointer to it.
type Part struct {
	At    string
	Value map[string]any
}

// Described returns the description of the API with all features.
var Described = sync.OnceValue(func() *Description {
	d, err := newDescription(features.All())
	if err != nil {
		panic(err)
	}
	return d
})

func newDescription(list []feature.Feature) (*Description, error) {
	document, err := api.Describe(list)
	if err != nil {
		return nil, err
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(document.JSON))
	if err != nil {
		return nil, err
	}
	d := &Description{
		Root: root.(map[string]any), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{},
	}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("openapi.json", root); err != nil {
		return nil, err
	}
	for path, value := range d.Root["paths"].(map[string]any) {
		at, members := "/paths/"+escaped(path), value.(map[string]any)
		shared := d.List(at+"/parameters", members["parameters"])
		for method, value := range members {
			if method == "parameters" {
				continue
			}
			op := Operation{
				Method: strings.ToUpper(method), Path: path, At: at + "/" + method, Value: value.(map[string]any),
			}
			op.Parameters = slices.Concat(shared, d.List(op.At+"/parameters", op.Value["parameters"]))
			d.Operations = append(d.Operations, op)
		}
	}
	slices.SortFunc(d.Operations, func(a, b Operation) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
	return d, nil
}

// A step of a pointer has its slashes escaped.
var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

func escaped(step string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(step) }

// List returns the elements of an array, and follows references.
func (d *Description) List(at string, array any) (parts []Part) {
	elements, _ := array.([]any)
	for i, element := range elements {
		parts = append(parts, d.Resolve(at+"/"+strconv.Itoa(i), element))
	}
	return parts
}

// Resolve follows references.
func (d *Description) Resolve(at string, value any) Part {
	members, _ := value.(map[string]any)
	reference, ok := members["$ref"].(string)
	if !ok {
		return Part{at, members}
	}
	at = strings.TrimPrefix(reference, "#")
	value = d.Root
	for step := range strings.SplitSeq(at[1:], "/") {
		switch inside := value.(type) {
		case map[string]any:
			value = inside[unescaped.Replace(step)]
		case []any:
			i, _ := strconv.Atoi(step)
			value = inside[i]
		}
	}
	return d.Resolve(at, value)
}

// Member returns a member of a part.
func (d *Description) Member(p Part, name string) (Part, bool) {
	value, ok := p.Value[name]
	return d.Resolve(p.At+"/"+escaped(name), value), ok
}

// Fits validates a value against the schema at a pointer.
func (d *Description) Fits(at string, value any) error {
	schema, err := d.schema(at)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (d *Description) schema(at string) (s *jsonschema.Schema, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s = d.schemas[at]; s == nil {
		s, err = d.compiler.Compile("openapi.json#" + (&url.URL{Path: at}).EscapedPath())
		d.schemas[at] = s
	}
	return s, err
}

// Find returns the operation of a request, nil if there is no such operation.
func (d *Description) Find(method, path string) *Operation {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var best *Operation
	for i := range d.Operations {
		op := &d.Operations[i]
		if op.Method != method || !matches(op.Path, path) {
			continue
		}
		if best == nil || strings.Count(op.Path, "{") < strings.Count(best.Path, "{") {
			best = op
		}
	}
	return best
}

// matches reports whether an escaped path is one of a template.
func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, step := range want {
		if step != got[i] && (!strings.HasPrefix(step, "{") || got[i] == "") {
			return false
		}
	}
	return true
}
