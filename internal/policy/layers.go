package policy

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Layer is one document that changes the policy below it. A field that it lacks, or that is null, is that of the layer
// below; null takes a tool out of a table; a list replaces the whole list.
type Layer struct {
	Name     string // whose it is, for Sources
	Pointer  string // where the document stands in a larger one: problems point into that one
	Document []byte // JSON; empty changes nothing
}

// Sources says of each field by its JSON pointer where its value comes from: "profile:cortex", or the name of a layer.
// A tool of a table has an entry of its own if a layer put it there or took it out.
type Sources map[string]string

// ParseLayers puts layers on top of one another, the lowest first. The lowest of all is a profile: the one that
// the topmost layer with a profile names, and that layer begins anew from it, whatever lies below. The error is a
// *session.InvalidError with the problems of all layers, the first 20 at most.
func ParseLayers(layers ...Layer) (Policy, Sources, error) {
	p := parser{literals: map[string]string{}, bad: map[string]bool{}}
	for _, layer := range layers {
		if err := p.readable(layer); err != nil {
			return Policy{}, nil, err
		}
	}
	p.begin(layers)
	for _, p.layer = range p.layers {
		if at := rawjson.Value(p.layer.Document); string(at.Of(p.layer.Document)) != "null" {
			p.object(at, reflect.ValueOf(&p.policy).Elem(), "")
		}
	}
	p.rules()
	if len(p.problems) > 0 {
		return Policy{}, nil, p.err()
	}
	// What is stored is the whole policy, and it must be possible to parse that again.
	if whole := len(p.policy.Document()); whole > maxBytes {
		p.tooLarge(whole, " with its defaults")
		return Policy{}, nil, p.err()
	}
	return p.policy, p.sources, nil
}

// readable refuses a layer that cannot be looked into.
func (p *parser) readable(layer Layer) error {
	if p.layer = layer; len(layer.Document) > maxBytes {
		p.tooLarge(len(layer.Document), "")
		return p.err()
	}
	if len(bytes.TrimSpace(layer.Document)) == 0 {
		return nil
	}
	if err := rawjson.Check(layer.Document, session.JSONLimits); err != nil {
		p.problem("", "invalid_json", "the policy is not JSON: %s", err)
		return p.err()
	}
	return nil
}

// begin finds the profile to begin from and leaves out what lies below the layer that names it.
func (p *parser) begin(layers []Layer) {
	p.policy = Default()
	for i, layer := range slices.Backward(layers) {
		if name, ok := profileOf(layer.Document); ok {
			p.policy, layers = profileOrDefault(name), layers[i:]
			break
		}
	}
	for _, layer := range layers {
		if len(bytes.TrimSpace(layer.Document)) > 0 {
			p.layers = append(p.layers, layer)
		}
	}
	p.sources = Sources{}
	for pointer := range leaves(reflect.ValueOf(p.policy), "") {
		p.sources[pointer] = "profile:" + p.policy.Profile
	}
}

// profileOf returns the profile that a document names; ok also if there is none of that name, which is a problem of it.
func profileOf(document []byte) (name string, ok bool) {
	if len(bytes.TrimSpace(document)) == 0 || document[rawjson.Start(document)] != '{' {
		return "", false
	}
	for key, value := range rawjson.Members(document, rawjson.Start(document)) {
		if rawjson.KeyIs(document, key, "profile") && document[value.Start] == '"' {
			text, _ := rawjson.Unquote(nil, value.Of(document))
			return string(text), true
		}
	}
	return "", false
}

// Merge changes a layer's document by a JSON merge patch (RFC 7396). A null stays in it: that is how a layer says
// that a field is that of the layer below, and that a tool is not in a table. Both are JSON objects, or empty.
func Merge(old, patch []byte) []byte {
	switch {
	case len(bytes.TrimSpace(old)) == 0:
		return bytes.TrimSpace(patch)
	case len(bytes.TrimSpace(patch)) == 0:
		return bytes.TrimSpace(old)
	}
	merged := merger{old: old, patch: patch}
	return merged.object(nil, rawjson.Value(old), rawjson.Value(patch))
}

type merger struct{ old, patch []byte }

// object appends the members of patch, as they were written, and those of old that patch does not name.
func (m merger) object(dst []byte, old, patch rawjson.Span) []byte {
	if m.old[old.Start] != '{' || m.patch[patch.Start] != '{' {
		return append(dst, patch.Of(m.patch)...)
	}
	before := map[string]rawjson.Span{}
	for key, value := range rawjson.Members(m.old, old.Start) {
		text, _ := rawjson.Unquote(nil, key.Of(m.old))
		before[string(text)] = value
	}
	first := len(dst)
	for key, value := range rawjson.Members(m.patch, patch.Start) {
		text, _ := rawjson.Unquote(nil, key.Of(m.patch))
		dst = append(append(append(dst, ','), key.Of(m.patch)...), ':')
		if had, ok := before[string(text)]; ok {
			dst = m.object(dst, had, value)
			delete(before, string(text))
			continue
		}
		dst = append(dst, value.Of(m.patch)...)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		dst = append(append(rawjson.Quote(append(dst, ','), []byte(name)), ':'), before[name].Of(m.old)...)
	}
	if len(dst) == first {
		return append(dst, "{}"...)
	}
	dst[first] = '{'
	return append(dst, '}')
}
