package api_test

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/varve-dev/varve/internal/api/openapi"
	"github.com/varve-dev/varve/internal/policy"
)

// description is the API's description as tests hold the API to it.
type description struct {
	root       map[string]any
	operations []operation

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by pointer
}

// operation is an operation of the description.
type operation struct {
	method, path string
	at           string // pointer to it
	value        map[string]any
	parameters   []part
}

// part is a part of the description and the pointer to it.
type part struct {
	at    string
	value map[string]any
}

var described = sync.OnceValue(func() *description {
	d, err := newDescription()
	if err != nil {
		panic(err)
	}
	return d
})

func newDescription() (*description, error) {
	document, err := openapi.Load(policy.Schema())
	if err != nil {
		return nil, err
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(document.JSON))
	if err != nil {
		return nil, err
	}
	d := &description{root: root.(map[string]any), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("openapi.json", root); err != nil {
		return nil, err
	}
	for path, value := range d.root["paths"].(map[string]any) {
		at, members := "/paths/"+escaped(path), value.(map[string]any)
		shared := d.list(at+"/parameters", members["parameters"])
		for method, value := range members {
			if method == "parameters" {
				continue
			}
			op := operation{method: strings.ToUpper(method), path: path, at: at + "/" + method, value: value.(map[string]any)}
			op.parameters = slices.Concat(shared, d.list(op.at+"/parameters", op.value["parameters"]))
			d.operations = append(d.operations, op)
		}
	}
	slices.SortFunc(d.operations, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return d, nil
}

// A step of a pointer has its slashes escaped.
var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

func escaped(step string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(step) }

// list returns the elements of an array, and follows references.
func (d *description) list(at string, array any) (parts []part) {
	elements, _ := array.([]any)
	for i, element := range elements {
		parts = append(parts, d.resolve(at+"/"+strconv.Itoa(i), element))
	}
	return parts
}

// resolve follows references.
func (d *description) resolve(at string, value any) part {
	members, _ := value.(map[string]any)
	reference, ok := members["$ref"].(string)
	if !ok {
		return part{at, members}
	}
	at = strings.TrimPrefix(reference, "#")
	value = d.root
	for step := range strings.SplitSeq(at[1:], "/") {
		switch inside := value.(type) {
		case map[string]any:
			value = inside[unescaped.Replace(step)]
		case []any:
			i, _ := strconv.Atoi(step)
			value = inside[i]
		}
	}
	return d.resolve(at, value)
}

// member returns a member of a part.
func (d *description) member(p part, name string) (part, bool) {
	value, ok := p.value[name]
	return d.resolve(p.at+"/"+escaped(name), value), ok
}

// fits validates a value against the schema at a pointer.
func (d *description) fits(at string, value any) error {
	schema, err := d.schema(at)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (d *description) schema(at string) (s *jsonschema.Schema, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s = d.schemas[at]; s == nil {
		s, err = d.compiler.Compile("openapi.json#" + (&url.URL{Path: at}).EscapedPath())
		d.schemas[at] = s
	}
	return s, err
}

// find returns the operation of a request, nil if there is no such operation.
func (d *description) find(method, path string) *operation {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var best *operation
	for i := range d.operations {
		op := &d.operations[i]
		if op.method == method && matches(op.path, path) && (best == nil || strings.Count(op.path, "{") < strings.Count(best.path, "{")) {
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
