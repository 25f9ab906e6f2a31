package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// policyPage is a layer of a policy as a form, with what each field does and which layer sets it.
type policyPage struct {
	sessionHead        // of a session's own layer
	ID          string // of the session; "" for the tenant's layer
	At          string // the address of the form
	Version     session.PolicyVersion
	Layer       string // as JSON
	Sections    []policySection
	Changes     []policyChange // that a form asks for
	Patch       string         // the same as JSON; "" before
	Problems    []session.Problem
	Refused     string // why the policy that they make is none
	Whole       string // the layer with the changes, as JSON
	Versions    []policyVersion
}

// policyVersion is a version of a layer with what it has changed.
type policyVersion struct {
	session.PolicyRecord
	Changes []policyChange
}

type policySection struct {
	Name   string // "" for the fields that are in none
	Fields []policyField
}

// policyField is a field with its value in force, as its input has it.
type policyField struct {
	Pointer, Name, Value, Source, Means string
	Kind                                string   // of its input: choice, text or document
	Choices                             []string // of a choice
}

// Own reports whether a layer sets the field, and not the profile.
func (f *policyField) Own() bool { return f.Source != "" && !strings.HasPrefix(f.Source, "profile") }

// policyChange is a field that a form changes.
type policyChange struct{ Pointer, From, To string }

// fieldSchema is what the schema of a policy says of a field or a section.
type fieldSchema struct {
	Description string                 `json:"description"`
	Type        []string               `json:"type"`
	Enum        []any                  `json:"enum"`
	Properties  map[string]fieldSchema `json:"properties"`
}

const schemaRoute client.Route[fieldSchema] = "GET policies/schema"

func showPolicy(v *visit) error {
	page, err := v.policy()
	if err != nil {
		return err
	}
	return v.show(page.section(), "Policy", "policy.html", page)
}

func (p *policyPage) section() string {
	if p.ID != "" {
		return "sessions"
	}
	return "policy"
}

// policy reads a layer: that of the session in the path, or else of the tenant.
func (v *visit) policy() (page *policyPage, err error) {
	page = &policyPage{ID: v.r.PathValue("id"), At: pathOf("policy")}
	if page.ID != "" {
		page.At = pathOf("sessions", page.ID, "policy")
		if page.sessionHead, err = v.head("policy"); err != nil {
			return nil, err
		}
	}
	read, err := client.Policy("GET", page.ID).Call(v.ctx, v.api, page.ID)
	if err != nil {
		return nil, err
	}
	schema, err := schemaRoute.Call(v.ctx, v.api)
	if err != nil {
		return nil, err
	}
	page.Version, page.Layer = read.Value.Version, indented(read.Value.Patch)
	if page.Sections, err = sectionsOf(read.Value, schema.Value); err != nil {
		return nil, err
	}
	return page, v.versions(page)
}

// versions reads the newest versions of a layer, with what each has changed.
func (v *visit) versions(page *policyPage) (err error) {
	const shown = 10
	var found []session.PolicyRecord
	q := client.Query{"limit": shown + 1}
	if page.ID == "" {
		found, _, err = list(v, client.ListTenantPolicyVersions, q)
	} else {
		found, _, err = list(v, client.ListSessionPolicyVersions, q, page.ID)
	}
	for i := range found {
		before := json.RawMessage("{}")
		if i+1 < len(found) {
			before = found[i+1].Patch
		}
		if i < shown {
			page.Versions = append(page.Versions, policyVersion{found[i], differences(before, found[i].Patch)})
		}
	}
	return err
}

// differences returns the fields in which two layers differ.
func differences(from, to json.RawMessage) (list []policyChange) {
	before, after := map[string]string{}, map[string]string{}
	addFields(before, "", from)
	addFields(after, "", to)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, pointer := range slices.Sorted(maps.Keys(all)) {
		if before[pointer] != after[pointer] {
			list = append(list, policyChange{pointer, before[pointer], after[pointer]})
		}
	}
	return list
}

// addFields adds the fields of a layer, by their pointers.
func addFields(to map[string]string, at string, value json.RawMessage) {
	if at != "" && !bytes.HasPrefix(value, []byte("{")) {
		to[at] = plain(value)
		return
	}
	var below map[string]json.RawMessage
	_ = json.Unmarshal(value, &below) // null has no fields
	for name, of := range below {
		addFields(to, at+"/"+name, of)
	}
}

// sectionsOf returns all fields of a policy, in the order of its document.
func sectionsOf(p protocol.Policy, schema fieldSchema) ([]policySection, error) {
	names, values, err := members(p.Effective)
	if err != nil {
		return nil, err
	}
	list := []policySection{{}}
	for _, name := range names {
		of := schema.Properties[name]
		if of.Properties == nil {
			list[0].Fields = append(list[0].Fields, fieldOf("/"+name, name, values[name], of, p.Sources))
			continue
		}
		below, fields, err := members(values[name])
		if err != nil {
			return nil, err
		}
		section := policySection{Name: name}
		for _, field := range below {
			pointer := "/" + name + "/" + field
			made := fieldOf(pointer, field, fields[field], of.Properties[field], p.Sources)
			section.Fields = append(section.Fields, made)
		}
		list = append(list, section)
	}
	return list, nil
}

// members returns the members of an object, with their names in its order.
func members(object json.RawMessage) (names []string, values map[string]json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	for values = map[string]json.RawMessage{}; d.More(); {
		name, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, nil, err
		}
		names = append(names, name.(string))
		values[name.(string)] = value
	}
	return names, values, nil
}

func fieldOf(pointer, name string, value json.RawMessage, of fieldSchema, sources map[string]string) policyField {
	f := policyField{
		Pointer: pointer, Name: name, Means: of.Description, Source: sources[pointer], Kind: "document",
		Value: plain(value),
	}
	for at := pointer; f.Source == "" && at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		f.Source = sources[at]
	}
	switch {
	case slices.Contains(of.Type, "boolean"):
		f.Kind, f.Choices = "choice", []string{"true", "false"}
	case of.Enum != nil:
		f.Kind = "choice"
		for _, choice := range of.Enum {
			if text, ok := choice.(string); ok {
				f.Choices = append(f.Choices, text)
			}
		}
	case slices.Contains(of.Type, "number"), slices.Contains(of.Type, "integer"):
		f.Kind = "text"
	case slices.Contains(of.Type, "string"):
		f.Kind = "prose"
	}
	return f
}

// plain returns a value as an input has it: a text without quotes, all else as JSON without spaces.
func plain(value json.RawMessage) string {
	if len(value) > 0 && value[0] == '"' {
		return literal(value)
	}
	var text bytes.Buffer
	if json.Compact(&text, value) != nil {
		return string(value)
	}
	return text.String()
}

// changePolicy shows what a form changes, and whether that makes a policy; or it sets what was shown.
func changePolicy(v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		return err
	}
	page, err := v.policy()
	if err != nil {
		return err
	}
	if patch := v.r.PostForm.Get("patch"); patch != "" {
		o := client.Options{Body: []byte(patch)}
		if page.ID == "" { // nobody has changed it since the changes were shown
			o.IfMatch, _ = strconv.Atoi(v.r.PostForm.Get("version"))
		}
		if _, err := client.Policy("PATCH", page.ID).With(v.ctx, v.api, o, page.ID); err != nil {
			return err
		}
		return v.redirect(page.At)
	}
	if layer := v.r.PostForm.Get("layer"); layer != "" { // of an older version
		_, err := client.Policy("PUT", page.ID).With(v.ctx, v.api, client.Options{Body: []byte(layer)}, page.ID)
		if err != nil {
			return err
		}
		return v.redirect(page.At)
	}
	changes := page.take(v.r.PostForm)
	if len(page.Changes) > 0 {
		if err := v.check(page, changes); err != nil {
			return err
		}
	}
	return v.show(page.section(), "Policy", "policy.html", page)
}

// take compares a form with the values in force, and returns the changes as a merge patch.
func (p *policyPage) take(form url.Values) map[string]any {
	patch := map[string]any{}
	for i := range p.Sections {
		into := patch
		below := map[string]any{}
		if p.Sections[i].Name != "" {
			into = below
		}
		for k := range p.Sections[i].Fields {
			f := &p.Sections[i].Fields[k]
			if !form.Has(f.Pointer) {
				continue
			}
			now := strings.ReplaceAll(form.Get(f.Pointer), "\r\n", "\n")
			if f.Kind != "prose" {
				now = plain(json.RawMessage(strings.TrimSpace(now)))
			}
			if now == f.Value {
				continue
			}
			p.Changes = append(p.Changes, policyChange{f.Pointer, f.Value, now})
			into[f.Name] = f.json(now)
			f.Value = now
		}
		if len(below) > 0 {
			patch[p.Sections[i].Name] = below
		}
	}
	return patch
}

// json returns the value of an input for the API, which says what is wrong with it.
func (f *policyField) json(text string) any {
	isText := f.Kind == "prose" || f.Kind == "choice" && f.Choices[0] != "true"
	if isText || !json.Valid([]byte(text)) {
		return text
	}
	return json.RawMessage(text)
}

// check asks the API whether the layer with some changes makes a policy.
func (v *visit) check(page *policyPage, changes map[string]any) error {
	layer := map[string]any{}
	if err := json.Unmarshal([]byte(page.Layer), &layer); err != nil {
		return err
	}
	if layer == nil {
		layer = map[string]any{}
	}
	as := "tenant"
	if page.ID != "" {
		as = "session"
	}
	whole, err := json.Marshal(merged(layer, changes))
	if err != nil {
		return err
	}
	page.Whole = string(whole)
	o := client.Options{Body: whole, Query: client.Query{"as": as}}
	_, err = client.CheckPolicy.With(v.ctx, v.api, o)
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Status == 422:
		page.Refused, page.Problems = refused.Problem.Detail, refused.Problem.Errors
		return nil
	case err != nil:
		return err
	}
	patch, err := json.Marshal(changes)
	page.Patch = string(patch)
	return err
}

// merged returns a layer with changes of it, of which sections are merged.
func merged(layer, changes map[string]any) map[string]any {
	all := maps.Clone(layer)
	for name, value := range changes {
		section, isSection := value.(map[string]any)
		old, hasOld := all[name].(map[string]any)
		if isSection && hasOld {
			value = merged(old, section)
		}
		all[name] = value
	}
	return all
}
