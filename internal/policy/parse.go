package policy

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// The codes of a policy's problems, besides unknown_field and invalid_json.
const (
	WrongType       = "wrong_type"
	OutOfRange      = "out_of_range"
	InvalidText     = "invalid_text"
	UnknownValue    = "unknown_value"
	InvalidTemplate = "invalid_template"
	InvalidPattern  = "invalid_pattern"
	Contradiction   = "contradiction"
)

// Parse puts a JSON document on top of the profile that it names, or of the default. The error is a
// *session.InvalidError with the document's problems, the first 20 at most.
func Parse(document []byte) (Policy, error) { return ParseAt("", document) }

// ParseAt parses a document that is the value at a JSON pointer of a larger one: problems point into the larger one.
func ParseAt(pointer string, document []byte) (Policy, error) {
	policy, _, err := ParseLayers(Layer{Name: "policy", Pointer: pointer, Document: document})
	return policy, err
}

// maxProblems limits how many problems of a policy are reported.
const maxProblems = 20

// parser collects problems on its way through the layers; a field with a problem keeps the value of the layer below.
type parser struct {
	layers   []Layer // that count, the lowest first
	layer    Layer   // the one that is being read, at last the topmost
	policy   Policy
	sources  Sources
	literals map[string]string // numbers as they were written, by pointer
	numbers  map[string]float64
	problems []session.Problem
	bad      map[string]bool   // pointers of the problems that are not contradictions
	spelled  map[string]string // how the layer that is being read spells a field by another name, by its pointer
	writers  *Writers          // nil: the topmost layer is stored, and is not held to them
	trigger  float64           // of the profile
}

// profileSource begins the source of what a profile says.
const profileSource = "profile:"

func newParser(base Policy, layers []Layer) *parser {
	p := &parser{
		policy: base, layers: layers, sources: Sources{}, literals: map[string]string{}, numbers: map[string]float64{},
		bad: map[string]bool{}, spelled: map[string]string{}, trigger: base.Trigger,
	}
	for pointer := range eachField(reflect.ValueOf(base), "") {
		p.sources[pointer] = profileSource + base.Profile
	}
	return p
}

// parse reads the layers, then checks the policy that they make.
func (p *parser) parse() {
	for _, p.layer = range p.layers {
		if at := rawjson.Value(p.layer.Document); !p.isNull(at) {
			clear(p.spelled)
			p.object(at, reflect.ValueOf(&p.policy).Elem(), "")
		}
	}
	p.follow()
	p.rules()
}

// follow lets what only a profile says of the shares of the window follow a trigger that a layer sets: a target that is
// not below it, in the profile's proportion, and hard up to it. Whoever sets one number need not know of the others.
func (p *parser) follow() {
	ofProfile := func(pointer string) bool { return strings.HasPrefix(p.sources[pointer], profileSource) }
	if ofProfile("/trigger") {
		return
	}
	made := &p.policy
	if ofProfile("/target") && made.Target >= made.Trigger && inShares(made) {
		const precision = 1e5 // the smallest share is 0.00001
		if target := math.Round(made.Trigger*made.Target/p.trigger*precision) / precision; target > 0 {
			made.Target, p.sources["/target"] = target, p.sources["/trigger"]
		}
	}
	if ofProfile("/hard") && made.Hard < made.Trigger && made.Trigger <= 1 {
		made.Hard = made.Trigger
		p.sources["/hard"] = p.sources["/trigger"]
	}
}

func (p *parser) err() error {
	return &session.InvalidError{Code: "invalid_request", Problems: p.problems}
}

func (p *parser) problem(pointer, code, format string, args ...any) {
	if len(p.problems) < maxProblems {
		at := p.layer.Pointer + p.asSpelled(pointer)
		p.problems = append(p.problems, session.Problem{Pointer: at, Code: code, Detail: fmt.Sprintf(format, args...)})
	}
	p.bad[pointer] = p.bad[pointer] || code != Contradiction
}

// asSpelled returns the pointer to a field, or to an entry of one, as the layer spells it.
func (p *parser) asSpelled(pointer string) string {
	for field, spelled := range p.spelled {
		if rest, ok := strings.CutPrefix(pointer, field); ok && (rest == "" || rest[0] == '/') {
			return spelled + rest
		}
	}
	return pointer
}

func (p *parser) wrongType(at rawjson.Span, pointer, wanted string) {
	p.problem(pointer, WrongType, "must be %s, not %s", wanted, spelling.Shorten(string(at.Of(p.layer.Document))))
}

func (p *parser) isNull(at rawjson.Span) bool { return string(at.Of(p.layer.Document)) == "null" }

// unquoted returns the text of a string literal.
func (p *parser) unquoted(at rawjson.Span) []byte {
	text, _ := rawjson.Unquote(nil, at.Of(p.layer.Document))
	return text
}

// value reads a value of a field, whose limits are those of f.
func (p *parser) value(at rawjson.Span, into reflect.Value, pointer string, f field) {
	switch into.Kind() {
	case reflect.Bool:
		p.boolean(at, into, pointer)
	case reflect.Int:
		p.integer(at, into, pointer, f)
	case reflect.Float64:
		p.number(at, into, pointer, f)
	case reflect.String:
		if text, ok := p.text(at, pointer, f, into.Type()); ok {
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
		p.wrongType(at, pointer, "true or false")
	}
}

// integer reads a whole number. Some writers have only numbers like 4.0, so a fraction of zeros is accepted. A number
// that is too large becomes the largest integer, which is outside every range.
func (p *parser) integer(at rawjson.Span, into reflect.Value, pointer string, f field) {
	text := string(at.Of(p.layer.Document))
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if strings.Trim(fraction, "0") != "" || err != nil && !errors.Is(err, strconv.ErrRange) {
		p.wrongType(at, pointer, "a whole number, written in digits,"+f.span())
		return
	}
	into.SetInt(n)
	p.literals[pointer] = text
}

// number reads a number. One that is too large becomes an infinity, which is outside every range.
func (p *parser) number(at rawjson.Span, into reflect.Value, pointer string, f field) {
	text := string(at.Of(p.layer.Document))
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		p.wrongType(at, pointer, "a number"+f.span())
		return
	}
	into.SetFloat(n)
	p.literals[pointer] = text
}

// text reads a string that the database can keep. If its type or its field, nil for a tool, has only some values, it is
// one of those.
func (p *parser) text(at rawjson.Span, pointer string, f field, of reflect.Type) (text string, ok bool) {
	literal := at.Of(p.layer.Document)
	if literal[0] != '"' {
		p.wrongType(at, pointer, "a string")
		return "", false
	}
	read, whole := rawjson.Unquote(nil, literal)
	allowed := choicesOf(of, pointer)
	if alias, ok := valueAliases[of][string(read)]; ok && allowed != nil {
		read = []byte(alias)
	}
	if len(f.Names) > 0 {
		read = []byte(templateAliases.Replace(string(read)))
	}
	shortest := 1
	if f.Empty {
		shortest = 0
	}
	switch {
	case allowed != nil && !slices.Contains(allowed, string(read)):
		hint := spelling.Hint(string(read), allowed)
		p.problem(pointer, UnknownValue, "%q is not known here%s", spelling.Shorten(string(read)), hint)
	case !whole:
		p.problem(pointer, InvalidText, "the text must not contain half of a surrogate pair")
	case bytes.IndexByte(read, 0) >= 0:
		p.problem(pointer, InvalidText, "the text must not contain a NUL character")
	case f.Line && bytes.ContainsAny(read, "\r\n"):
		p.problem(pointer, InvalidText, "the text must be one line")
	case len(read) < shortest || len(read) > f.Bytes:
		p.problem(pointer, OutOfRange, "the text must have %d to %d bytes, not %d", shortest, f.Bytes, len(read))
	default:
		return string(read), true
	}
	return "", false
}

// list reads an array, which replaces the old one.
func (p *parser) list(at rawjson.Span, into reflect.Value, pointer string, f field) {
	if p.layer.Document[at.Start] != '[' {
		p.wrongType(at, pointer, "an array of strings")
		return
	}
	list := reflect.MakeSlice(into.Type(), 0, 0)
	n := 0
	for element := range rawjson.Elements(p.layer.Document, at.Start) {
		if n++; n > maxListed {
			continue
		}
		if entry, ok := p.entry(element, into.Type(), pointer+"/"+strconv.Itoa(n-1), f); ok {
			list = reflect.Append(list, entry)
		}
	}
	if n > maxListed {
		p.problem(pointer, OutOfRange, "there are %d entries: the limit is %d", n, maxListed)
	}
	into.Set(list)
}

// table reads an object from tools to something: its members join those of the layer below, and null takes one out.
func (p *parser) table(at rawjson.Span, into reflect.Value, pointer string, f field) {
	for key, value := range p.members(at, pointer) {
		below := pointer + "/" + token(p.unquoted(key))
		tool, ok := p.text(key, below, f, nil)
		if !ok {
			continue
		}
		p.sources[below] = p.layer.Name
		if p.isNull(value) {
			into.SetMapIndex(reflect.ValueOf(tool), reflect.Value{})
		} else if entry, ok := p.entry(value, into.Type(), below, f); ok {
			into.SetMapIndex(reflect.ValueOf(tool), entry)
		}
	}
	if into.Len() > maxTools {
		p.problem(pointer, OutOfRange, "there are %d tools, those of the profile included: the limit is %d",
			into.Len(), maxTools)
	}
}

// entry reads an entry of a list or a table. ok is false if the entry has a problem.
func (p *parser) entry(at rawjson.Span, of reflect.Type, pointer string, f field) (entry reflect.Value, ok bool) {
	problems := len(p.problems)
	entry = reflect.New(of.Elem()).Elem()
	p.value(at, entry, pointer, f)
	return entry, len(p.problems) == problems
}

// object reads a policy or one of its sections.
func (p *parser) object(at rawjson.Span, into reflect.Value, pointer string) {
	known := fieldsOf(into.Type())
	seen := make([]bool, len(known))
	for key, value := range p.members(at, pointer) {
		name := string(p.unquoted(key))
		i := slices.Index(known, fieldNamed(pointer, name, known))
		below := pointer + "/" + name
		if i >= 0 && known[i] != name {
			below = pointer + "/" + known[i]
			p.spelled[below] = pointer + "/" + token([]byte(name))
		}
		set := i >= 0 && seen[i]
		if i >= 0 {
			seen[i] = true
		}
		switch {
		case set:
			p.problem(below, "invalid_json", "the field is set twice: its name here is %q", known[i])
		case i < 0 && isRetired(below, value.Of(p.layer.Document)):
		case i < 0:
			p.problem(pointer+"/"+token([]byte(name)), "unknown_field", "there is no field %q here%s",
				spelling.Shorten(name), spelling.Hint(name, known))
		case p.isNull(value):
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

// members yields each member of an object once. It reports repeated members, and a value that is not an object.
func (p *parser) members(at rawjson.Span, pointer string) iter.Seq2[rawjson.Span, rawjson.Span] {
	return func(yield func(key, value rawjson.Span) bool) {
		if p.layer.Document[at.Start] != '{' {
			p.wrongType(at, pointer, "an object")
			return
		}
		seen := map[string]bool{}
		for key, value := range rawjson.Members(p.layer.Document, at.Start) {
			name := p.unquoted(key)
			if seen[string(name)] {
				p.problem(pointer+"/"+token(name), "invalid_json", "the member %q appears twice",
					spelling.Shorten(string(name)))
				continue
			}
			seen[string(name)] = true
			if !yield(key, value) {
				return
			}
		}
	}
}

// token returns a key as a token of a JSON pointer. A key that is longer than any name is cut.
func token(key []byte) string {
	return spelling.EscapePointer(string(text.First(key, maxNameBytes)))
}
