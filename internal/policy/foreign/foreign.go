// Package foreign translates the configuration of each of the five systems that Varve unites into a policy. It is pure.
//
// Start at Translate, then at systems.json, which has the settings of every system with the policy fields that mean the
// same. What one setting means for several fields at once is in couple.go.
package foreign

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// Translation is a system's configuration as a policy.
type Translation struct {
	System     string
	Patch      json.RawMessage // to set as a policy
	Window     int             // tokens; what the configuration sets and is no policy's but the session's; 0 for none
	Translated []Setting
	Omitted    []Setting
}

// Setting is what became of a setting.
type Setting struct {
	Name   string // as the file has it
	Fields []string
	Why    string // it is not translated, or how its meaning differs
}

// system is one of the five, as systems.json describes it.
type system struct {
	Profile  string    `json:"profile"`
	Lenient  bool      `json:"lenient"` // it uses its default in place of a value of the wrong type
	Sections []section `json:"sections"`
}

// section is an object of settings. A file that has none of the system's sections has their settings at its top.
type section struct {
	At       []string  `json:"at"`
	Settings []setting `json:"settings"`
}

type setting struct {
	Name     string         `json:"name"`
	Kind     string         `json:"kind"`    // share, count, switch, text, names or table
	To       []string       `json:"to"`      // the fields that get the value
	Add      int            `json:"add"`     // to a count
	Least    *int           `json:"least"`   // a count that is less means the same
	Null     map[string]any `json:"null"`    // the fields that null sets; absent: null is the default
	Default  any            `json:"default"` // if the system's differs from the profile's
	Required bool           `json:"required"`
	Low      *float64       `json:"low"`
	High     *float64       `json:"high"`
	Refused  string         `json:"refused"` // what the system itself answers outside of these
	Window   bool           `json:"window"`  // it is the session's window
	Why      string         `json:"why"`     // it is not translated
	Note     string         `json:"note"`    // how its meaning differs
}

//go:embed systems.json
var document []byte

var systems = readSystems()

func readSystems() (all map[string]system) {
	if err := json.Unmarshal(document, &all); err != nil {
		panic(err) // the file is embedded
	}
	return all
}

// Systems returns the names of the systems.
func Systems() []string { return slices.Sorted(maps.Keys(systems)) }

// SystemOf returns the system whose name a file's name contains, "" for none.
func SystemOf(file string) string {
	name := plain(filepath.Base(file))
	for _, system := range Systems() {
		if strings.Contains(name, plain(system)) {
			return system
		}
	}
	return ""
}

// plain returns a name in lower case without what separates words, which systems write in several ways.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// Translate translates a configuration file, JSON or YAML, of the named system. The error is a *session.InvalidError
// that points into the file: at what the system itself refuses, in its own words, or at what no policy can hold.
func Translate(name string, file []byte) (*Translation, error) {
	of, ok := systems[name]
	if !ok {
		return nil, session.Invalid("", policy.UnknownValue, "there is no system %q; there are %s", name,
			strings.Join(Systems(), ", "))
	}
	var config map[string]any
	if err := yaml.Unmarshal(file, &config); err != nil {
		return nil, session.Invalid("", "invalid_json", "the file must be an object in JSON or YAML: %v", err)
	}
	t := &translator{
		system:      of,
		Translation: Translation{System: name},
		patch:       map[string]any{"profile": of.Profile},
		pointers:    map[string]string{},
	}
	t.file(config)
	t.couple()
	return t.finish()
}

// translator collects the patch and what became of each setting.
type translator struct {
	Translation
	system   system
	patch    map[string]any
	pointers map[string]string // of the settings, by the fields that they set
	problems []session.Problem
}

// file reads the sections of a file, or its top if it has none.
func (t *translator) file(config map[string]any) {
	rest := maps.Clone(config)
	found := false
	var known []string
	for _, s := range t.system.Sections {
		missing := true
		for key, value := range config {
			if inner, ok := value.(map[string]any); ok && slices.ContainsFunc(s.At, named(key)) {
				found, missing = true, false
				delete(rest, key)
				t.section(s, "/"+key, inner, inner, false)
			}
		}
		if missing {
			known = append(known, s.At...)
		}
	}
	why := "it is outside of the settings of compaction"
	if !found {
		why = noSuchSetting
		for _, s := range t.system.Sections {
			t.section(s, "", config, rest, true)
			known = append(known, s.names()...)
		}
	}
	t.unknown("", rest, absent(config, known), why)
}

const noSuchSetting = "the system has no such setting"

func named(key string) func(string) bool {
	return func(name string) bool { return plain(name) == plain(key) }
}

// section translates the settings of a section. It takes those that it knows out of rest, and reports those that remain
// if the section has a place of its own.
func (t *translator) section(s section, pointer string, config, rest map[string]any, top bool) {
	rest = cloneUnless(top, rest)
	for _, one := range s.Settings {
		key, value, given := find(config, one.Name)
		delete(rest, key)
		switch {
		case given:
			t.setting(one, pointer+"/"+key, value)
		case one.Required && top:
			t.refuse(pointer+"/"+one.Name, one, "undefined")
		case one.Default != nil:
			t.setting(one, pointer+"/"+one.Name, one.Default)
		}
	}
	if !top {
		t.unknown(pointer, rest, absent(config, s.names()), noSuchSetting)
	}
}

func (s section) names() []string {
	names := make([]string, len(s.Settings))
	for i, one := range s.Settings {
		names[i] = one.Name
	}
	return names
}

// absent returns the names that a section does not give: who gives one did not misspell it elsewhere.
func absent(config map[string]any, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		_, _, given := find(config, name)
		return given
	})
}

// unknown refuses a name that is probably a misspelt one of those that the file lacks: what the file means by it would
// not hold. It omits the others.
func (t *translator) unknown(pointer string, rest map[string]any, lacking []string, why string) {
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		name, near := spelling.Closest(key, lacking)
		if near && plain(name) != plain(key) && spelling.Distance(key, name) <= 2 {
			t.problems = append(t.problems, session.Problem{Pointer: pointer + "/" + key, Code: "unknown_field",
				Detail: fmt.Sprintf("%s: did you mean %q?", noSuchSetting, name)})
			continue
		}
		t.Omitted = append(t.Omitted, Setting{Name: dotted(pointer + "/" + key), Why: why})
	}
}

func cloneUnless(shared bool, m map[string]any) map[string]any {
	if shared {
		return m
	}
	return maps.Clone(m)
}

// find returns the member of that name, however it is spelled.
func find(config map[string]any, name string) (key string, value any, given bool) {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if plain(key) == plain(name) {
			return key, config[key], true
		}
	}
	return "", nil, false
}

func dotted(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

// setting translates one setting.
func (t *translator) setting(of setting, pointer string, value any) {
	if of.Why != "" {
		t.Omitted = append(t.Omitted, Setting{Name: dotted(pointer), Why: of.Why})
		return
	}
	switch {
	case value == nil && of.Required:
		t.refuse(pointer, of, "null")
		return
	case value == nil:
		t.null(of, pointer)
		return
	}
	read, err := of.read(value)
	switch {
	case err != nil && t.system.Lenient:
		why := err.Error() + ": the system uses its default"
		t.Omitted = append(t.Omitted, Setting{Name: dotted(pointer), Why: why})
	case err == nil && of.leavesNothing(value):
		err = errors.New("must be a whole number")
		fallthrough
	case err != nil && of.Refused == "":
		t.problems = append(t.problems, session.Problem{
			Pointer: pointer, Code: policy.WrongType, Detail: err.Error() + ", not " + shown(value),
		})
	case err != nil || of.outside(value):
		t.refuse(pointer, of, shown(value))
	default:
		t.set(of, pointer, read)
	}
}

func (t *translator) null(of setting, pointer string) {
	if of.Null == nil {
		t.Omitted = append(t.Omitted, Setting{Name: dotted(pointer), Why: "null is the default"})
		return
	}
	fields := slices.Sorted(maps.Keys(of.Null))
	for _, field := range fields {
		t.put(field, of.Null[field], pointer)
	}
	t.Translated = append(t.Translated, Setting{Name: dotted(pointer), Fields: names(fields), Why: of.Note})
}

func (t *translator) set(of setting, pointer string, value any) {
	if of.Window {
		window := value.(int)
		if window < session.MinWindowTokens || window > session.MaxWindowTokens {
			t.Omitted = append(t.Omitted, Setting{Name: dotted(pointer), Why: fmt.Sprintf(
				"a session's window_tokens are %d to %d", session.MinWindowTokens, session.MaxWindowTokens)})
			return
		}
		t.Window = window
		t.Translated = append(t.Translated, Setting{
			Name: dotted(pointer), Fields: []string{"window_tokens"}, Why: "each session's, not the policy's",
		})
		return
	}
	for _, field := range of.To {
		t.put(field, value, pointer)
	}
	t.Translated = append(t.Translated, Setting{Name: dotted(pointer), Fields: names(of.To), Why: of.Note})
}

func names(pointers []string) []string {
	list := make([]string, len(pointers))
	for i, pointer := range pointers {
		list[i] = dotted(pointer)
	}
	return list
}

// put sets a field of the patch. Of two settings that switch one stage, one that switches it off wins.
func (t *translator) put(field string, value any, setting string) {
	name, leaf, nested := strings.Cut(field[1:], "/")
	in := t.patch
	if nested {
		inner, _ := in[name].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
			in[name] = inner
		}
		in, name = inner, leaf
	}
	if in[name] != false {
		in[name] = value
		t.pointers[field] = setting
	}
}

func (t *translator) refuse(pointer string, of setting, value string) {
	detail := of.Name + " " + fmt.Sprintf(of.Refused, value)
	t.problems = append(t.problems, session.Problem{Pointer: pointer, Code: policy.OutOfRange, Detail: detail})
}

// finish returns the translation if a policy can hold it.
func (t *translator) finish() (*Translation, error) {
	var err error
	if t.Patch, err = json.Marshal(t.patch); err != nil {
		return nil, fmt.Errorf("foreign: %w", err)
	}
	_, err = policy.Parse(t.Patch)
	var invalid *session.InvalidError
	if errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			p.Detail = dotted(p.Pointer) + " " + p.Detail
			p.Pointer = t.settingOf(p.Pointer)
			t.problems = append(t.problems, p)
		}
	}
	if len(t.problems) > 0 {
		return nil, &session.InvalidError{Code: "invalid_request", Problems: t.problems}
	}
	return &t.Translation, err
}

// settingOf returns where the file sets a field, or an entry of one.
func (t *translator) settingOf(field string) string {
	for at := field; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		if setting, ok := t.pointers[at]; ok {
			return setting + field[len(at):]
		}
	}
	return field
}
