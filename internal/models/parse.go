package models

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The ranges of a model's figures. The window of a session has the same range.
const (
	minContext = 1_000
	maxContext = 10_000_000
	maxSeconds = 604_800
	maxPrice   = 100
)

// Extend returns the registry with the models of a document merged over it, which is LiteLLM's list or
//
//	{"providers": {"openai": ["azure"]},
//	 "models": [{"id": "my-model", "provider": "me", "context_tokens": 64000,
//	             "sources": [{"of": "window", "name": "our own server", "date": "2026-01-31"}]}]}
//
// A model replaces the one with the same id, as a whole. The error names all mistakes.
func (r *Registry) Extend(document []byte) (*Registry, error) {
	if isLiteLLM(document) {
		return r.extendLiteLLM(document)
	}
	p := &parser{}
	var providers, families map[string][]string
	var list []json.RawMessage
	p.object("", document, map[string]any{"providers": &providers, "families": &families, "models": &list})
	own := make([]Model, len(list))
	for i, raw := range list {
		own[i] = p.model(fmt.Sprintf("/models/%d", i), raw)
	}
	if len(p.problems) > 0 {
		return nil, errors.Join(p.problems...)
	}
	return build(merged(r.providers, providers), merged(r.families, families), r.models, own)
}

// merged returns the lists of both maps; those of the second count.
func merged(first, second map[string][]string) map[string][]string {
	both := map[string][]string{}
	maps.Copy(both, first)
	maps.Copy(both, second)
	return both
}

// build returns a registry of models, in which own replace others with the same ids, and take the names of others that
// are ids of theirs.
func build(providers, families map[string][]string, others, own []Model) (*Registry, error) {
	built := &Registry{
		names: map[string]int{}, exact: map[string]int{}, providers: providers, families: families,
		models: slices.Clone(own), vendors: map[string]bool{},
	}
	taken := map[string]bool{}
	for _, m := range own {
		taken[strings.ToLower(m.ID)] = true
	}
	for _, m := range others {
		if !taken[strings.ToLower(m.ID)] {
			isTaken := func(alias string) bool { return taken[strings.ToLower(alias)] }
			m.Aliases = slices.DeleteFunc(slices.Clone(m.Aliases), isTaken)
			built.models = append(built.models, m)
		}
	}
	slices.SortStableFunc(built.models, func(a, b Model) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID, b.ID))
	})
	built.listVendors()
	var problems []error
	for i := range built.models {
		m := &built.models[i]
		m.Family = cmp.Or(m.Family, built.familyOf(plainName(m.ID, built.vendors)))
		problems = append(problems, built.index(i))
	}
	for i := range built.models {
		problems = append(problems, built.inherit(&built.models[i]))
	}
	return built, errors.Join(problems...)
}

func (r *Registry) listVendors() {
	for _, region := range regions {
		r.vendors[region] = true
	}
	for provider, names := range r.providers {
		for _, name := range append([]string{provider}, names...) {
			r.vendors[strings.ToLower(name)] = true
		}
	}
}

// index enters the names of model i. Those of another offer of a model are no spellings of it.
func (r *Registry) index(i int) error {
	m := &r.models[i]
	for _, name := range append([]string{m.ID}, m.Aliases...) {
		lower := strings.ToLower(name)
		other, taken := r.exact[lower]
		if !taken && m.SameAs == "" {
			other, taken = r.names[key(name)]
		}
		if taken && other != i {
			return fmt.Errorf("%q names both %s and %s", lower, r.models[other].ID, m.ID)
		}
		r.exact[lower] = i
		if m.SameAs == "" {
			r.names[key(name)] = i
		}
	}
	return nil
}

// inherit gives another offer of a model what its entry leaves to that.
func (r *Registry) inherit(m *Model) error {
	if m.SameAs == "" {
		return nil
	}
	i, known := r.exact[strings.ToLower(m.SameAs)]
	if !known || r.models[i].SameAs != "" {
		return fmt.Errorf("%s is the same as %q, which must be the id of a model of its own", m.ID, m.SameAs)
	}
	of := &r.models[i]
	m.SameAs, m.Facts = of.ID, of.Facts
	m.Cache = cmp.Or(m.Cache, of.Cache)
	if m.ContextTokens == 0 {
		m.ContextTokens, m.MaxInputTokens = of.ContextTokens, of.MaxInputTokens
		m.MaxOutputTokens = of.MaxOutputTokens
		m.Sources = of.Sources
	}
	return nil
}

// parser collects everything that is wrong with a document.
type parser struct{ problems []error }

func (p *parser) wrong(pointer, format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("%s: "+format, append([]any{pointer}, args...)...))
}

// object decodes the members of an object into the variables that members has for their names.
func (p *parser) object(pointer string, document []byte, members map[string]any) {
	var given map[string]json.RawMessage
	err := json.Unmarshal(document, &given)
	if err == nil && given == nil {
		err = errors.New("it must be an object, not null")
	}
	if err != nil {
		p.wrong(cmp.Or(pointer, "/"), "%s", plain(err))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := pointer + "/" + name
		into, known := members[name]
		if !known {
			p.wrong(at, "it is not known here: there are %s", strings.Join(slices.Sorted(maps.Keys(members)), ", "))
			continue
		}
		if err := json.Unmarshal(given[name], into); err != nil {
			p.wrong(at, "%s", plain(err))
		}
	}
}

// plain returns an error of encoding/json without that package's name.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }

func (p *parser) model(at string, document []byte) (m Model) {
	m.Aliases = []string{}
	var cache json.RawMessage
	var sources []json.RawMessage
	before := len(p.problems)
	p.object(at, document, map[string]any{
		"id": &m.ID, "provider": &m.Provider, "aliases": &m.Aliases, "context_tokens": &m.ContextTokens,
		"max_input_tokens": &m.MaxInputTokens, "max_output_tokens": &m.MaxOutputTokens,
		"cache": &cache, "sources": &sources, "dialect": &m.Dialect, "same_as": &m.SameAs, "family": &m.Family,
		"max_images": &m.MaxImages, "refuses_prefill": &m.RefusesPrefill, "system_in_middle": &m.SystemInMiddle,
		"binds_thinking": &m.BindsThinking,
	})
	if len(cache) > 0 && string(cache) != "null" {
		m.Cache = p.cache(at+"/cache", cache)
	}
	for i, raw := range sources {
		m.Sources = append(m.Sources, p.source(fmt.Sprintf("%s/sources/%d", at, i), raw))
	}
	if len(p.problems) == before {
		p.rules(at, &m)
	}
	return m
}

// rules checks a model whose members all have the right types.
func (p *parser) rules(at string, m *Model) {
	for i, name := range append([]string{m.ID}, m.Aliases...) {
		if name == "" || len(name) > 255 {
			p.wrong(at, "name %d of the model must have 1 to 255 bytes, not %d", i, len(name))
		}
	}
	if m.Provider == "" {
		p.wrong(at+"/provider", "it is missing")
	}
	if m.SameAs != "" && m.ContextTokens == 0 {
		return // it has the figures of that model
	}
	p.within(at+"/context_tokens", float64(m.ContextTokens), minContext, maxContext)
	if m.MaxInputTokens != 0 {
		p.within(at+"/max_input_tokens", float64(m.MaxInputTokens), minContext, float64(m.ContextTokens))
	}
	p.within(at+"/max_output_tokens", float64(m.MaxOutputTokens), 0, float64(m.ContextTokens))
	if !slices.ContainsFunc(m.Sources, func(s Source) bool { return s.Of == "window" }) {
		p.wrong(at+"/sources", `it must have the source of the window: {"of": "window", "name": …, "date": …}`)
	}
}

func (p *parser) cache(at string, document []byte) *Cache {
	c := &Cache{}
	p.object(at, document, map[string]any{
		"short_seconds": &c.ShortSeconds, "long_seconds": &c.LongSeconds,
		"read_price": &c.ReadPrice, "write_price": &c.WritePrice, "long_write_price": &c.LongWritePrice,
	})
	p.within(at+"/short_seconds", float64(c.ShortSeconds), 0, maxSeconds)
	p.within(at+"/long_seconds", float64(c.LongSeconds), 0, maxSeconds)
	p.within(at+"/read_price", c.ReadPrice, 0, maxPrice)
	p.within(at+"/write_price", c.WritePrice, 0, maxPrice)
	p.within(at+"/long_write_price", c.LongWritePrice, 0, maxPrice)
	return c
}

var date = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$`)

func (p *parser) source(at string, document []byte) (s Source) {
	p.object(at, document, map[string]any{"of": &s.Of, "name": &s.Name, "date": &s.Date})
	if s.Of != "window" && s.Of != "cache" {
		p.wrong(at+"/of", "it must be window or cache, not %q", s.Of)
	}
	if s.Name == "" {
		p.wrong(at+"/name", "it is missing")
	}
	if !date.MatchString(s.Date) {
		p.wrong(at+"/date", "it must be a date like 2026-01-31, not %q", s.Date)
	}
	return s
}

func (p *parser) within(at string, value, low, high float64) {
	if value < low || value > high {
		p.wrong(at, "it must be from %.0f to %.0f, not %v", low, high, value)
	}
}
