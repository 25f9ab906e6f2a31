package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// arguments are those of a call, by name. What is null or absent is not there.
type arguments map[string]any

func (a arguments) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a arguments) number(name string) int64 {
	n, _ := a[name].(int64)
	return n
}

func (a arguments) flag(name string) bool {
	b, _ := a[name].(bool)
	return b
}

func (a arguments) has(name string) bool { return a[name] != nil }

// exclude returns an error if a call has one argument and any of others.
func (a arguments) exclude(name, because string, others ...string) error {
	for _, other := range others {
		if a.has(name) && a.has(other) {
			return wrong(other, "does not go with %s: %s; leave one of the two out", name, because)
		}
	}
	return nil
}

func wrong(argument, format string, values ...any) error {
	return session.Invalid(argument, "invalid_request", format, values...)
}

// maxArguments is how many bytes the arguments of a call have at most.
const maxArguments = 64 << 10

// parse reads the arguments of a call: an object, or the text of one, as Chat Completions has it. Every problem is
// reported at once.
func (d *Definition) parse(given []byte) (arguments, error) {
	given = bytes.TrimSpace(given)
	if len(given) > 0 && given[0] == '"' && len(given) <= maxArguments {
		var inner string
		if err := json.Unmarshal(given, &inner); err == nil {
			given = bytes.TrimSpace([]byte(inner))
		}
	}
	if len(given) == 0 || string(given) == "null" {
		given = []byte("{}")
	}
	switch {
	case len(given) > maxArguments:
		return nil, wrong("arguments", "have %d bytes, the limit is %d", len(given), maxArguments)
	case rawjson.Check(given, rawjson.Limits{Depth: session.MaxJSONDepth}) != nil || given[0] != '{':
		return nil, wrong("arguments", "must be a JSON object such as %s", d.Example)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(given, &members); err != nil {
		return nil, wrong("arguments", "must be a JSON object such as %s", d.Example)
	}
	return d.check(members)
}

// check reads the members of the arguments.
func (d *Definition) check(members map[string]json.RawMessage) (arguments, error) {
	read := arguments{}
	problems := &session.InvalidError{Code: "invalid_request"}
	report := func(name, format string, values ...any) {
		problems.Problems = append(problems.Problems, session.Problem{
			Pointer: name, Code: "invalid_request", Detail: fmt.Sprintf(format, values...)})
	}
	for i := range d.Arguments {
		a := &d.Arguments[i]
		value, there := members[a.Name]
		delete(members, a.Name)
		if !there || string(value) == "null" {
			if a.Required {
				report(a.Name, "is missing: %s, such as %s", a.Description, a.exampleJSON())
			}
			continue
		}
		got, problem := a.read(value)
		if problem != "" {
			report(a.Name, "%s", problem)
			continue
		}
		read[a.Name] = got
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		report(spelling.Shorten(name), "is not an argument of %s%s", d.Name, spelling.Hint(name, d.names()))
	}
	if len(problems.Problems) > 0 {
		return nil, problems
	}
	return read, nil
}

func (d *Definition) names() (names []string) {
	for i := range d.Arguments {
		names = append(names, d.Arguments[i].Name)
	}
	return names
}

// read reads the value of an argument, or says what is wrong with it and what would be right.
func (a *Argument) read(value json.RawMessage) (got any, problem string) {
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return nil, "must be " + a.expected()
	}
	switch v := decoded.(type) {
	case string:
		if a.Kind == text {
			return a.readText(v)
		}
	case float64:
		if a.Kind == integer {
			return a.readNumber(v)
		}
	case bool:
		if a.Kind == flag {
			return v, ""
		}
	}
	return nil, fmt.Sprintf("must be %s, not %s", a.expected(), spelling.Shorten(string(value)))
}

func (a *Argument) readText(v string) (any, string) {
	switch {
	case v == "" && a.Required:
		return nil, "is empty: it must be " + a.expected()
	case v == "" && a.Name != "pointer":
		return nil, ""
	case int64(len(v)) > a.Max:
		return nil, fmt.Sprintf("has %d bytes, the limit is %d", len(v), a.Max)
	}
	return v, ""
}

func (a *Argument) readNumber(v float64) (any, string) {
	if v != math.Trunc(v) || v < float64(a.Min) || v > float64(a.Max) {
		return nil, fmt.Sprintf("must be %s, not %v", a.expected(), v)
	}
	return int64(v), ""
}

func (a *Argument) expected() string {
	switch a.Kind {
	case integer:
		if a.Max >= maxNumber {
			return fmt.Sprintf("a whole number from %d on, such as %s", a.Min, a.Example)
		}
		return fmt.Sprintf("a whole number from %d to %d, such as %s", a.Min, a.Max, a.Example)
	case flag:
		return "true or false"
	}
	return "a text such as " + a.exampleJSON()
}

func (a *Argument) exampleJSON() string {
	if a.Kind == text {
		return `"` + a.Example + `"`
	}
	return a.Example
}
