package fake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// problem is what a provider refuses a request for.
type problem struct {
	status  int
	kind    string // the provider's type of the error
	param   string
	code    string
	message string
}

func (p *problem) Error() string { return p.message }

// Refuses returns why a provider refuses a body, "" if it does not.
func Refuses(p Protocol, body []byte) string {
	c := &check{anthropic: p == Messages}
	if readers[p](c, body); c.wrong != nil {
		return c.wrong.message
	}
	return ""
}

// object is a JSON object.
type object = map[string]any

// check reads a request in one protocol and remembers the first thing that the provider refuses.
type check struct {
	anthropic bool
	wrong     *problem
}

// refuse remembers a problem, unless there is one.
func (c *check) refuse(param, code, format string, args ...any) {
	if c.wrong == nil {
		c.wrong = &problem{400, "invalid_request_error", param, code, fmt.Sprintf(format, args...)}
	}
}

// decoded returns the request's body as an object.
func (c *check) decoded(body []byte) object {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.Decode(new(any)) != io.EOF {
		c.refuse("", "", "We could not parse the JSON body of your request.")
	}
	whole, ok := value.(object)
	if !ok {
		c.refuse("", "", "The body must be an object.")
	}
	return whole
}

// members refuses an object that lacks a required member or has one that the provider does not know.
func (c *check) members(at string, o object, required, known string) {
	allowed := append(strings.Fields(required), strings.Fields(known)...)
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(allowed, name) {
			c.unknown(join(at, name))
		}
	}
	for name := range strings.FieldsSeq(required) {
		if _, ok := o[name]; !ok {
			c.missing(join(at, name))
		}
	}
}

func (c *check) unknown(at string) {
	if c.anthropic {
		c.refuse(at, "", "%s: Extra inputs are not permitted", at)
	}
	c.refuse(at, "unknown_parameter", "Unknown parameter: '%s'.", at)
}

func (c *check) missing(at string) {
	if c.anthropic {
		c.refuse(at, "", "%s: Field required", at)
	}
	c.refuse(at, "missing_required_parameter", "Missing required parameter: '%s'.", at)
}

// kind refuses a value of another type than the provider wants.
func (c *check) kind(at, want string) {
	if c.anthropic {
		c.refuse(at, "", "%s: Input should be a valid %s", at, want)
	}
	c.refuse(at, "invalid_type", "Invalid type for '%s': expected %s.", at, want)
}

// text returns a string.
func (c *check) text(at string, value any) string {
	t, ok := value.(string)
	if !ok {
		c.kind(at, "string")
	}
	return t
}

// number returns an integer of at least one; 0 if there is none.
func (c *check) number(at string, value any) int {
	if value == nil {
		return 0
	}
	number, ok := value.(json.Number)
	n, err := number.Int64()
	if !ok || err != nil {
		c.kind(at, "integer")
		return 0
	}
	if n < 1 {
		c.refuse(at, "integer_below_min_value", "%s: Input should be greater than or equal to 1", at)
	}
	return int(n)
}

// object returns an object.
func (c *check) object(at string, value any) object {
	o, ok := value.(object)
	if !ok {
		c.kind(at, "object")
	}
	return o
}

// list returns a list, which must not be empty.
func (c *check) list(at string, value any) []any {
	l, ok := value.([]any)
	if !ok {
		c.kind(at, "list")
	} else if len(l) == 0 {
		c.refuse(at, "empty_array", "%s: at least one item is required", at)
	}
	return l
}

// one refuses a value that is not one of those.
func (c *check) one(at, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	if c.anthropic {
		c.refuse(at, "", "%s: Input should be '%s'", at, strings.Join(allowed, "' or '"))
	}
	c.refuse(at, "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", value,
		strings.Join(allowed, "', '"))
}

// sampling refuses a temperature that no model takes.
func (c *check) sampling(o object, high float64) {
	value, ok := o["temperature"]
	if !ok || value == nil {
		return
	}
	number, ok := value.(json.Number)
	if t, err := number.Float64(); !ok || err != nil || t < 0 || t > high {
		c.refuse("temperature", "decimal_above_max_value", "temperature: must be between 0 and %g", high)
	}
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func item(at string, i int) string { return fmt.Sprintf("%s.%d", at, i) }
