package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// largestChecked keeps the tests of the limits from spending their time here.
const largestChecked = 1 << 20

// check holds an exchange to the description.
func (d *description) check(t testing.TB, r *http.Request, body string, got *httptest.ResponseRecorder) {
	t.Helper()
	if err := d.differs(r, body, got); err != nil {
		t.Errorf("%s %s is not as it is described: %v\n%d %.2000s", r.Method, r.URL.Path, err, got.Code, got.Body)
	}
}

// differs says where an exchange differs from the description: the answer's status, headers and body have to be in it,
// and so has a request that succeeded.
func (d *description) differs(r *http.Request, body string, got *httptest.ResponseRecorder) error {
	op := d.find(r.Method, r.URL.EscapedPath())
	if op == nil {
		return d.lost(r, got)
	}
	response, err := d.response(op, got.Code)
	if err == nil {
		err = d.checkResponse(response, r.Method, got)
	}
	if err == nil && got.Code < http.StatusMultipleChoices {
		err = d.checkRequest(op, r, body)
	}
	return err
}

// lost holds the answer to a request for no route to what is said of errors.
func (d *description) lost(r *http.Request, got *httptest.ResponseRecorder) error {
	if got.Code != http.StatusNotFound && got.Code != http.StatusMethodNotAllowed {
		return fmt.Errorf("the route is not there")
	}
	return d.checkResponse(d.resolve("", map[string]any{"$ref": "#/components/responses/NotFound"}), r.Method, got)
}

// response returns the response of an operation for a status: its own, or a shared one.
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
	"Content-Security-Policy", "Referrer-Policy", "Last-Modified", "RateLimit", "RateLimit-Policy",
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
	value, err := decodedAs(kind, body)
	if err != nil {
		return err
	}
	return d.fits(media.at+"/schema", value)
}

// decodedAs returns a body as its schema describes it: JSON, an array of the lines of NDJSON, or text.
func decodedAs(kind string, body []byte) (any, error) {
	switch {
	case strings.HasSuffix(kind, "ndjson"):
		lines := []any{}
		for line := range bytes.Lines(body) {
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
			if err != nil {
				return nil, err
			}
			lines = append(lines, value)
		}
		return lines, nil
	case strings.HasSuffix(kind, "json"):
		return jsonschema.UnmarshalJSON(bytes.NewReader(body))
	}
	return string(body), nil
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

// typed returns the text of a parameter as a value of its schema's type.
func typed(schema part, text string) any {
	if kind := schema.value["type"]; kind == "integer" || kind == "boolean" {
		if value, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err == nil {
			return value
		}
	}
	return text
}
