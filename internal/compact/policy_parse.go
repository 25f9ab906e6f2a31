package compact

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// How large a policy may be. It is in every answer about its session and is parsed by every compaction.
const (
	maxPolicyBytes     = 64 << 10
	maxPolicyTools     = 1_000 // in one list
	maxPolicyToolBytes = 128   // of one name
	maxCategories      = 2_000 // those of the default included
)

// The codes of a policy's problems, beside unknown_field and invalid_json.
const (
	WrongType       = "wrong_type"
	OutOfRange      = "out_of_range"
	InvalidText     = "invalid_text"
	UnknownCategory = "unknown_category"
	Contradiction   = "contradiction"
)

// ParsePolicy merges a JSON document over the default policy: a field that is missing or null has its default, and so
// has a tool in categories. The error is a *session.InvalidError with every problem of the document.
func ParsePolicy(document []byte) (Policy, error) { return ParsePolicyAt("", document) }

// ParsePolicyAt is ParsePolicy for a document that is the value at a JSON pointer of a larger one: problems point into
// that one.
func ParsePolicyAt(pointer string, document []byte) (Policy, error) {
	p := policyParser{at: pointer, document: document, policy: DefaultPolicy(), literals: map[string]string{}}
	if len(document) > maxPolicyBytes {
		p.tooLarge(len(document), "")
		return Policy{}, p.err()
	}
	if len(bytes.TrimSpace(document)) > 0 {
		limits := rawjson.Limits{Depth: session.MaxJSONDepth, Nodes: session.MaxJSONNodes, NumberBytes: session.MaxNumberBytes}
		if err := rawjson.Check(document, limits); err != nil {
			return Policy{}, session.Invalid(pointer, "invalid_json", "the policy is no JSON: %s", err)
		}
		p.value(rawjson.Value(document), reflect.ValueOf(&p.policy).Elem(), "")
	}
	p.rules()
	if len(p.problems) > 0 {
		return Policy{}, p.err()
	}
	// What is stored is the whole policy, and it must be possible to parse that again.
	if whole := len(p.policy.Document()); whole > maxPolicyBytes {
		p.tooLarge(whole, " with its defaults")
		return Policy{}, p.err()
	}
	return p.policy, nil
}

// policyParser collects problems on its way through a document; what has one keeps its default.
type policyParser struct {
	at       string // where the document stands in a larger one
	document []byte
	policy   Policy
	literals map[string]string // numbers as they were written, by pointer
	problems []session.Problem
}

func (p *policyParser) err() error {
	return &session.InvalidError{Code: "invalid_policy", Problems: p.problems}
}

func (p *policyParser) problem(pointer, code, format string, args ...any) {
	p.problems = append(p.problems, session.Problem{Pointer: p.at + pointer, Code: code, Detail: fmt.Sprintf(format, args...)})
}

func (p *policyParser) tooLarge(size int, how string) {
	p.problem("", OutOfRange, "the policy has %d bytes%s: %d are the most", size, how, maxPolicyBytes)
}

func (p *policyParser) value(at rawjson.Span, into reflect.Value, pointer string) {
	text := string(at.Of(p.document))
	if text == "null" {
		return
	}
	switch field := into.Addr().Interface().(type) {
	case *bool:
		if *field = text == "true"; !*field && text != "false" {
			p.wrongType(at, pointer, "boolean: write true or false")
		}
	case *int:
		p.integer(at, field, pointer)
	case *float64:
		p.number(at, field, pointer)
	case *[]string:
		p.names(at, field, pointer)
	case *map[string]Category:
		p.categories(at, *field, pointer)
	default:
		p.object(at, into, pointer)
	}
}

func (p *policyParser) wrongType(at rawjson.Span, pointer, wanted string) {
	p.problem(pointer, WrongType, "%s is no %s", abridged(at.Of(p.document)), wanted)
}

// integer reads a whole number. Some writers have no other numbers than 4.0, so a fraction of zeros is accepted. What
// is too large becomes the largest there is, which no range has.
func (p *policyParser) integer(at rawjson.Span, into *int, pointer string) {
	text := string(at.Of(p.document))
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if strings.Trim(fraction, "0") != "" || err != nil && !errors.Is(err, strconv.ErrRange) {
		p.wrongType(at, pointer, "whole number, written in digits")
		return
	}
	*into, p.literals[pointer] = int(n), text
}

// number reads a number; one that is too large becomes an infinity, which no range has.
func (p *policyParser) number(at rawjson.Span, into *float64, pointer string) {
	text := string(at.Of(p.document))
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		p.wrongType(at, pointer, "number")
		return
	}
	*into, p.literals[pointer] = n, text
}

// names reads a list of tools.
func (p *policyParser) names(at rawjson.Span, into *[]string, pointer string) {
	if p.document[at.Start] != '[' {
		p.wrongType(at, pointer, "array of strings")
		return
	}
	names := []string{}
	for element := range rawjson.Elements(p.document, at.Start) {
		if p.document[element.Start] != '"' {
			p.wrongType(at, pointer, "array of strings")
			return
		}
		name, ok := p.name(element, fmt.Sprintf("%s/%d", pointer, len(names)))
		if !ok {
			return
		}
		names = append(names, name)
	}
	if len(names) > maxPolicyTools {
		p.problem(pointer, OutOfRange, "there are %d names: %d are the most", len(names), maxPolicyTools)
		return
	}
	*into = names
}

// name reads the name of a tool from a string literal.
func (p *policyParser) name(at rawjson.Span, pointer string) (name string, ok bool) {
	text, whole := rawjson.Unquote(nil, at.Of(p.document))
	switch {
	case !whole:
		p.problem(pointer, InvalidText, "the name holds half of a surrogate pair")
	case bytes.IndexByte(text, 0) >= 0:
		p.problem(pointer, InvalidText, "the name holds a NUL character")
	case len(text) == 0 || len(text) > maxPolicyToolBytes:
		p.problem(pointer, OutOfRange, "the name has %d bytes: 1 to %d are possible", len(text), maxPolicyToolBytes)
	default:
		return string(text), true
	}
	return "", false
}

func (p *policyParser) object(at rawjson.Span, into reflect.Value, pointer string) {
	fields := fieldsOf(into.Type())
	for key, value := range p.members(at, pointer) {
		text, _ := rawjson.Unquote(nil, key.Of(p.document))
		name := abridged(text)
		i := slices.Index(fields, name)
		if i < 0 {
			p.problem(pointer+"/"+token(text), "unknown_field", "there is no field %q here%s", name, suggestion(name, fields))
			continue
		}
		p.value(value, into.Field(i), pointer+"/"+name)
	}
}

func (p *policyParser) categories(at rawjson.Span, into map[string]Category, pointer string) {
	for key, value := range p.members(at, pointer) {
		text, _ := rawjson.Unquote(nil, key.Of(p.document))
		below := pointer + "/" + token(text)
		tool, ok := p.name(key, below)
		if !ok {
			continue
		}
		literal := value.Of(p.document)
		if string(literal) == "null" {
			delete(into, tool)
			continue
		}
		i := slices.IndexFunc(categories, func(c Category) bool { return literal[0] == '"' && rawjson.KeyIs(p.document, value, string(c)) })
		if i < 0 {
			p.problem(below, UnknownCategory, "%s is none of rereadable, non-reproducible, ephemeral, computational", abridged(literal))
			continue
		}
		into[tool] = categories[i]
	}
	if len(into) > maxCategories {
		p.problem(pointer, OutOfRange, "there are %d tools, those of the default included: %d are the most", len(into), maxCategories)
	}
}

// members yields each member of an object once; one that is repeated is a problem, and so is anything but an object.
func (p *policyParser) members(at rawjson.Span, pointer string) func(yield func(key, value rawjson.Span) bool) {
	return func(yield func(key, value rawjson.Span) bool) {
		if p.document[at.Start] != '{' {
			p.wrongType(at, pointer, "object")
			return
		}
		seen := map[string]bool{}
		for key, value := range rawjson.Members(p.document, at.Start) {
			text, _ := rawjson.Unquote(nil, key.Of(p.document))
			name := string(text)
			if seen[name] {
				p.problem(pointer+"/"+token(text), "invalid_json", "%s is there twice", abridged(text))
				continue
			}
			seen[name] = true
			if !yield(key, value) {
				return
			}
		}
	}
}

func fieldsOf(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

// token writes a key as a token of a JSON pointer (RFC 6901); one that is longer than any name is cut.
func token(key []byte) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(string(firstChars(key, maxPolicyToolBytes)))
}

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
