package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/varve-dev/varve/internal/api/openapi"
	"github.com/varve-dev/varve/internal/compact"
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
	document, err := openapi.Load(compact.PolicySchema())
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

func escaped(step string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(step) }

// list are the elements of an array, references followed.
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
		value = value.(map[string]any)[step]
	}
	return d.resolve(at, value)
}

// member is a member of a part.
func (d *description) member(p part, name string) (part, bool) {
	value, ok := p.value[name]
	return d.resolve(p.at+"/"+escaped(name), value), ok
}

// fits validates a value against the schema at a pointer.
func (d *description) fits(at string, value any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	schema := d.schemas[at]
	if schema == nil {
		compiled, err := d.compiler.Compile("openapi.json#" + (&url.URL{Path: at}).EscapedPath())
		if err != nil {
			return err
		}
		schema, d.schemas[at] = compiled, compiled
	}
	return schema.Validate(value)
}

// find is the operation that a request is for, nil for none.
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

// largestChecked keeps the tests of the limits from spending their time here.
const largestChecked = 1 << 20

// check holds an exchange to the description: the answer's status, headers and body are in it, and so is a request that
// succeeded.
func (d *description) check(t testing.TB, r *http.Request, body string, got *httptest.ResponseRecorder) {
	t.Helper()
	op := d.find(r.Method, r.URL.EscapedPath())
	if op == nil {
		d.checkLost(t, r, got)
		return
	}
	response, err := d.response(op, got.Code)
	if err == nil {
		err = d.checkResponse(response, r.Method, got)
	}
	if err == nil && got.Code < http.StatusMultipleChoices {
		err = d.checkRequest(op, r, body)
	}
	if err != nil {
		t.Errorf("%s %s is not as it is described: %v\n%d %.2000s", r.Method, r.URL.Path, err, got.Code, got.Body)
	}
}

// checkLost holds a request to no route to what is said of errors.
func (d *description) checkLost(t testing.TB, r *http.Request, got *httptest.ResponseRecorder) {
	t.Helper()
	if got.Code != http.StatusNotFound && got.Code != http.StatusMethodNotAllowed {
		t.Errorf("%s %s is not described, and answers %d", r.Method, r.URL.Path, got.Code)
		return
	}
	if err := d.checkResponse(d.resolve("", map[string]any{"$ref": "#/components/responses/NotFound"}), r.Method, got); err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
}

// response is what an operation says of a status: by name, or as one of those that many have.
func (d *description) response(op *operation, status int) (part, error) {
	responses := part{op.at + "/responses", op.value["responses"].(map[string]any)}
	if r, ok := d.member(responses, strconv.Itoa(status)); ok {
		return r, nil
	}
	r, _ := d.member(responses, "default")
	for _, also := range r.value["x-statuses"].([]any) {
		if also.(json.Number).String() == strconv.Itoa(status) {
			return r, nil
		}
	}
	return part{}, fmt.Errorf("the status %d is not there", status)
}

// everywhere are the headers that every answer may have.
var everywhere = []string{
	"Content-Type", "Content-Length", "Content-Encoding", "Cache-Control", "Vary", "X-Content-Type-Options", "X-Request-Id", "Request-Id", "Connection", "Allow",
	"Content-Security-Policy", "Referrer-Policy", "Last-Modified",
}

func (d *description) checkResponse(response part, method string, got *httptest.ResponseRecorder) error {
	headers, _ := d.member(response, "headers")
	known := slices.Clone(everywhere)
	for name := range headers.value {
		header, _ := d.member(headers, name)
		known = append(known, http.CanonicalHeaderKey(name))
		value := got.Header().Get(name)
		switch {
		case value == "" && header.value["required"] == true:
			return fmt.Errorf("the header %s is missing", name)
		case value != "":
			if err := d.fits(header.at+"/schema", value); err != nil {
				return fmt.Errorf("header %s: %w", name, err)
			}
		}
	}
	for name := range got.Header() {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the header %s is not there", name)
		}
	}
	return d.checkBody(response, method, got)
}

func (d *description) checkBody(response part, method string, got *httptest.ResponseRecorder) error {
	content, ok := d.member(response, "content")
	switch {
	case !ok && got.Body.Len() > 0:
		return fmt.Errorf("there is a body")
	case !ok || method == http.MethodHead:
		return nil
	}
	kind, _, err := mime.ParseMediaType(got.Header().Get("Content-Type"))
	if err != nil {
		return err
	}
	media, ok := d.member(content, kind)
	if !ok {
		if _, ok := d.member(content, "*/*"); !ok {
			return fmt.Errorf("the Content-Type %s is not there", kind)
		}
		return nil
	}
	_, schema := media.value["schema"]
	if !schema || got.Body.Len() > largestChecked {
		return nil
	}
	body, err := unpacked(got)
	if err != nil {
		return err
	}
	if lines, ok := d.member(media, "x-line"); ok {
		return d.checkLines(lines.at, body)
	}
	value := any(string(body))
	if strings.HasSuffix(kind, "json") {
		value, err = jsonschema.UnmarshalJSON(bytes.NewReader(body))
	}
	if err != nil {
		return err
	}
	return d.fits(media.at+"/schema", value)
}

// checkLines validates each line of NDJSON.
func (d *description) checkLines(schema string, body []byte) error {
	for line := range bytes.Lines(body) {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err == nil {
			err = d.fits(schema, value)
		}
		if err != nil {
			return fmt.Errorf("%w: line %.500s", err, line)
		}
	}
	return nil
}

func unpacked(got *httptest.ResponseRecorder) ([]byte, error) {
	if got.Header().Get("Content-Encoding") != "zstd" {
		return got.Body.Bytes(), nil
	}
	reader, err := zstd.NewReader(bytes.NewReader(got.Body.Bytes()))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}

// checkRequest holds the description to what the API takes: it must not be narrower.
func (d *description) checkRequest(op *operation, r *http.Request, body string) error {
	for name, given := range r.URL.Query() {
		i := slices.IndexFunc(op.parameters, func(p part) bool { return p.value["in"] == "query" && p.value["name"] == name })
		if i < 0 {
			return fmt.Errorf("the parameter %s is not there", name)
		}
		if err := d.fits(op.parameters[i].at+"/schema", typed(d.resolve("", op.parameters[i].value["schema"]), given[0])); err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	if body == "" || r.Header.Get("Content-Encoding") != "" || len(body) > largestChecked {
		return nil
	}
	request, _ := d.member(part{op.at, op.value}, "requestBody")
	content, _ := d.member(request, "content")
	media, ok := d.member(content, "application/json")
	if _, anything := d.member(content, "*/*"); anything {
		return nil
	}
	if !ok {
		return fmt.Errorf("the request has a body")
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	if err := d.fits(media.at+"/schema", value); err != nil {
		return fmt.Errorf("the request %.500s: %w", body, err)
	}
	return nil
}

// typed is the text of a parameter as its schema takes it.
func typed(schema part, text string) any {
	if kind := schema.value["type"]; kind == "integer" || kind == "boolean" {
		if value, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err == nil {
			return value
		}
	}
	return text
}
