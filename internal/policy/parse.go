package policy

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// The codes of a policy's problems, beside unknown_field and invalid_json.
const (
	WrongType       = "wrong_type"
	OutOfRange      = "out_of_range"
	InvalidText     = "invalid_text"
	UnknownValue    = "unknown_value"
	InvalidTemplate = "invalid_template"
	Contradiction   = "contradiction"
)

// Parse puts a JSON document on top of the profile that it names, or of the default. The error is a
// *session.InvalidError with the document's problems, the first 20 at most.
func Parse(document []byte) (Policy, error) { return ParseAt("", document) }

// ParseAt does what Parse does for a document that is the value at a JSON pointer of a larger one: problems point into
// that one.
func ParseAt(pointer string, document []byte) (Policy, error) {
	policy, _, err := ParseLayers(Layer{Name: "policy", Pointer: pointer, Document: document})
	return policy, err
}

// maxProblems is how many problems of a policy are told.
const maxProblems = 20

// parser collects problems on its way through the layers; what has one keeps the value of the layer below.
type parser struct {
	layers   []Layer // those that count, the lowest first
	layer    Layer   // the one that is being read, at last the topmost
	policy   Policy
	sources  Sources
	literals map[string]string // numbers as they were written, by pointer
	problems []session.Problem
	bad      map[string]bool // pointers of those that are no contradictions
}

func (p *parser) err() error {
	return &session.InvalidError{Code: "invalid_request", Problems: p.problems}
}

func (p *parser) problem(pointer, code, format string, args ...any) {
	if len(p.problems) < maxProblems {
		detail := fmt.Sprintf(format, args...)
		p.problems = append(p.problems, session.Problem{Pointer: p.layer.Pointer + pointer, Code: code, Detail: detail})
	}
	p.bad[pointer] = p.bad[pointer] || code != Contradiction
}

func (p *parser) tooLarge(size int, how string) {
	p.problem("", OutOfRange, "the policy has %d bytes%s: %d are the most", size, how, maxBytes)
}

func (p *parser) wrongType(at rawjson.Span, pointer, wanted string) {
	p.problem(pointer, WrongType, "%s is no %s", spelling.Shorten(string(at.Of(p.layer.Document))), wanted)
}

// value reads a value of a field, whose limits are those of f.
func (p *parser) value(at rawjson.Span, into reflect.Value, pointer string, f field) {
	switch into.Kind() {
	case reflect.Bool:
		p.boolean(at, into, pointer)
	case reflect.Int:
		p.integer(at, into, pointer)
	case reflect.Float64:
		p.number(at, into, pointer)
	case reflect.String:
		if text, ok := p.text(at, pointer, f, choicesOf(into.Type(), pointer)); ok {
			into.SetString(text)
		}
	case reflect.Slice:
		p.list(at, into, pointer, f)
	case reflect.Map:
		p.table(at, into, pointer, f)
	}
}

func (p *parser) boolean(at rawjson.Span, into reflect.Value, pointer string) {
	switch string(at.Of(p.layer.Document)) {
	case "true":
		into.SetBool(true)
	case "false":
		into.SetBool(false)
	default:
		p.wrongType(at, pointer, "boolean: write true or false")
	}
}

// integer reads a whole number. Some writers have no other numbers than 4.0, so a fraction of zeros is accepted. What
// is too large becomes the largest there is, which no range has.
func (p *parser) integer(at rawjson.Span, into reflect.Value, pointer string) {
	text := string(at.Of(p.layer.Document))
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if strings.Trim(fraction, "0") != "" || err != nil && !errors.Is(err, strconv.ErrRange) {
		p.wrongType(at, pointer, "whole number, written in digits"+fields[pointer].span())
		return
	}
	into.SetInt(n)
	p.literals[pointer] = text
}

// number reads a number; one that is too large becomes an infinity, which no range has.
func (p *parser) number(at rawjson.Span, into reflect.Value, pointer string) {
	text := string(at.Of(p.layer.Document))
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		p.wrongType(at, pointer, "number"+fields[pointer].span())
		return
	}
	into.SetFloat(n)
	p.literals[pointer] = text
}

// text reads a string that the database can keep, and that is one of allowed if there are some.
func (p *parser) text(at rawjson.Span, pointer string, f field, allowed []string) (text string, ok bool) {
	literal := at.Of(p.layer.Document)
	if literal[0] != '"' {
		p.wrongType(at, pointer, "string")
		return "", false
	}
	read, whole := rawjson.Unquote(nil, literal)
	switch {
	case allowed != nil && !slices.Contains(allowed, string(read)):
		p.problem(pointer, UnknownValue, "%q is not known here%s", spelling.Shorten(string(read)), spelling.Hint(string(read), allowed))
	case !whole:
		p.problem(pointer, InvalidText, "the text holds half of a surrogate pair")
	case bytes.IndexByte(read, 0) >= 0:
		p.problem(pointer, InvalidText, "the text holds a NUL character")
	case f.line && bytes.ContainsAny(read, "\r\n"):
		p.problem(pointer, InvalidText, "the text has more than one line")
	case len(read) == 0 && !f.empty || len(read) > f.bytes:
		p.problem(pointer, OutOfRange, "the text has %d bytes: %s to %d are possible", len(read), map[bool]string{false: "1", true: "0"}[f.empty], f.bytes)
	default:
		return string(read), true
	}
	return "", false
}

// list reads an array, which replaces the one that was there.
func (p *parser) list(at rawjson.Span, into reflect.Value, pointer string, f field) {
	if p.layer.Document[at.Start] != '[' {
		p.wrongType(at, pointer, "array of strings")
		return
	}
	list, n := reflect.MakeSlice(into.Type(), 0, 0), 0
	for element := range rawjson.Elements(p.layer.Document, at.Start) {
		if n++; n > maxListed {
			continue
		}
		if entry, ok := p.entry(element, into.Type(), pointer+"/"+strconv.Itoa(n-1), f); ok {
			list = reflect.Append(list, entry)
		}
	}
	if n > maxListed {
		p.problem(pointer, OutOfRange, "there are %d entries: %d are the most", n, maxListed)
	}
	into.Set(list)
}

// table reads an object from tools to something: its members join those that are there, and null takes one out.
func (p *parser) table(at rawjson.Span, into reflect.Value, pointer string, f field) {
	for key, value := range p.members(at, pointer) {
		text, _ := rawjson.Unquote(nil, key.Of(p.layer.Document))
		below := pointer + "/" + token(text)
		tool, ok := p.text(key, below, f, nil)
		if !ok {
			continue
		}
		p.sources[below] = p.layer.Name
		if string(value.Of(p.layer.Document)) == "null" {
			into.SetMapIndex(reflect.ValueOf(tool), reflect.Value{})
		} else if entry, ok := p.entry(value, into.Type(), below, f); ok {
			into.SetMapIndex(reflect.ValueOf(tool), entry)
		}
	}
	if into.Len() > maxTools {
		p.problem(pointer, OutOfRange, "there are %d tools, those of the profile included: %d are the most", into.Len(), maxTools)
	}
}

// entry reads what a list or a table has, unless something is wrong with it.
func (p *parser) entry(at rawjson.Span, of reflect.Type, pointer string, f field) (entry reflect.Value, ok bool) {
	problems := len(p.problems)
	entry = reflect.New(of.Elem()).Elem()
	p.value(at, entry, pointer, f)
	return entry, len(p.problems) == problems
}

func (p *parser) object(at rawjson.Span, into reflect.Value, pointer string) {
	known := fieldsOf(into.Type())
	for key, value := range p.members(at, pointer) {
		text, _ := rawjson.Unquote(nil, key.Of(p.layer.Document))
		name := string(text)
		i := slices.Index(known, name)
		below := pointer + "/" + name
		switch {
		case i < 0:
			p.problem(pointer+"/"+token(text), "unknown_field", "there is no field %q here%s", spelling.Shorten(name), spelling.Hint(name, known))
		case string(value.Of(p.layer.Document)) == "null":
		case into.Field(i).Kind() == reflect.Struct:
			p.object(value, into.Field(i), below)
		default:
			p.value(value, into.Field(i), below, fields[below])
			if into.Field(i).Kind() != reflect.Map {
				p.sources[below] = p.layer.Name
			}
		}
	}
}

// members yields each member of an object once; one that is repeated is a problem, and so is anything but an object.
func (p *parser) members(at rawjson.Span, pointer string) func(yield func(key, value rawjson.Span) bool) {
	return func(yield func(key, value rawjson.Span) bool) {
		document := p.layer.Document
		if document[at.Start] != '{' {
			p.wrongType(at, pointer, "object")
			return
		}
		seen := map[string]bool{}
		for key, value := range rawjson.Members(document, at.Start) {
			text, _ := rawjson.Unquote(nil, key.Of(document))
			name := string(text)
			if seen[name] {
				p.problem(pointer+"/"+token(text), "invalid_json", "%s is there twice", spelling.Shorten(name))
				continue
			}
			seen[name] = true
			if !yield(key, value) {
				return
			}
		}
	}
}

// token returns a key as a token of a JSON pointer; one that is longer than any name is cut.
func token(key []byte) string {
	return spelling.EscapePointer(string(text.First(key, maxNameBytes)))
}
