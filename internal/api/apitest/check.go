package apitest

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

// Check holds an exchange to the description.
func (d *Description) Check(t testing.TB, r *http.Request, body string, got *httptest.ResponseRecorder) {
	t.Helper()
	if err := d.Differs(r, body, got); err != nil {
		t.Errorf("%s %s is not as it is described: %v\n%d %.2000s", r.Method, r.URL.Path, err, got.Code, got.Body)
	}
}

// Differs says where an exchange differs from the description: the answer's status, headers and body have to be in it,
// and so has a request that succeeded.
func (d *Description) Differs(r *http.Request, body string, got *httptest.ResponseRecorder) error {
	op := d.Find(r.Method, r.URL.EscapedPath())
	if op == nil {
		return d.lost(r, got)
	}
	response, err := d.Response(op, got.Code)
	if err == nil {
		err = d.checkResponse(response, r.Method, got)
	}
	if err == nil && got.Code < http.StatusMultipleChoices {
		err = d.checkRequest(op, r, body)
	}
	return err
}

// lost holds the answer to a request for no route to what is said of errors.
func (d *Description) lost(r *http.Request, got *httptest.ResponseRecorder) error {
	if got.Code != http.StatusNotFound && got.Code != http.StatusMethodNotAllowed {
		return fmt.Errorf("the route is not there")
	}
	return d.checkResponse(d.Resolve("", map[string]any{"$ref": "#/components/responses/NotFound"}), r.Method, got)
}

// Response returns the response of an operation for a status: its own, or a shared one.
func (d *Description) Response(op *Operation, status int) (Part, error) {
	responses := Part{op.At + "/responses", op.Value["responses"].(map[string]any)}
	if r, ok := d.Member(responses, strconv.Itoa(status)); ok {
		return r, nil
	}
	r, _ := d.Member(responses, "default")
	for _, also := range r.Value["x-statuses"].([]any) {
		if also.(json.Number).String() == strconv.Itoa(status) {
			return r, nil
		}
	}
	return Part{}, fmt.Errorf("the status %d is not there", status)
}

// everywhere are the headers that every answer may have.
var everywhere = []string{
	"Content-Type", "Content-Length", "Content-Encoding", "Cache-Control", "Vary", "X-Content-Type-Options",
	"X-Request-Id", "Request-Id", "Connection", "Allow",
	"Content-Security-Policy", "Referrer-Policy", "Last-Modified", "RateLimit", "RateLimit-Policy",
	"Idempotent-Replayed", "Idempotency-Expires",
}

func (d *Description) checkResponse(response Part, method string, got *httptest.ResponseRecorder) error {
	headers, _ := d.Member(response, "headers")
	known := slices.Clone(everywhere)
	for name := range headers.Value {
		header, _ := d.Member(headers, name)
		known = append(known, http.CanonicalHeaderKey(name))
		value := got.Header().Get(name)
		switch {
		case value == "" && header.Value["required"] == true:
			return fmt.Errorf("the header %s is missing", name)
		case value != "":
			if err := d.Fits(header.At+"/schema", value); err != nil {
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

func (d *Description) checkBody(response Part, method string, got *httptest.ResponseRecorder) error {
	content, ok := d.Member(response, "content")
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
	media, ok := d.Member(content, kind)
	if !ok {
		if _, ok := d.Member(content, "*/*"); !ok {
			return fmt.Errorf("the Content-Type %s is not there", kind)
		}
		return nil
	}
	_, schema := media.Value["schema"]
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
	return d.Fits(media.At+"/schema", value)
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
func (d *Description) checkRequest(op *Operation, r *http.Request, body string) error {
	for name, given := range r.URL.Query() {
		i := slices.IndexFunc(op.Parameters, func(p Part) bool {
			return p.Value["in"] == "query" && p.Value["name"] == name
		})
		if i < 0 {
			return fmt.Errorf("the parameter %s is not there", name)
		}
		value := typed(d.Resolve("", op.Parameters[i].Value["schema"]), given[0])
		if err := d.Fits(op.Parameters[i].At+"/schema", value); err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	if body == "" || r.Header.Get("Content-Encoding") != "" || len(body) > largestChecked {
		return nil
	}
	request, _ := d.Member(Part{op.At, op.Value}, "requestBody")
	content, _ := d.Member(request, "content")
	media, ok := d.Member(content, "application/json")
	if _, anything := d.Member(content, "*/*"); anything {
		return nil
	}
	if !ok {
		return fmt.Errorf("the request has a body")
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	if err := d.Fits(media.At+"/schema", value); err != nil {
		return fmt.Errorf("the request %.500s: %w", body, err)
	}
	return nil
}

// typed returns the text of a parameter as a value of its schema's type.
func typed(schema Part, text string) any {
	if kind := schema.Value["type"]; kind == "integer" || kind == "boolean" {
		if value, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err == nil {
			return value
		}
	}
	return text
}
