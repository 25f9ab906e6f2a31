package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Layer is one document that changes the policy below it. A field that it lacks, or that is null, is that of the layer
// below; null takes a tool out of a table; a list replaces the whole list.
type Layer struct {
	Name     string // the owner of the document, for Sources
	Pointer  string // of the document in a larger one: problems point into that one
	Document []byte // JSON; empty changes nothing
}

// Sources has the origin of each field's value by the field's JSON pointer: "profile:cortex", or the name of a layer.
// A tool of a table has a separate entry if a layer put it there or took it out.
type Sources map[string]string

// ParseLayers puts layers on top of one another, the lowest first. The lowest of all is a profile: the one that
// the topmost layer with a profile names, and that layer begins anew from it, whatever lies below. The error is a
// *session.InvalidError with the problems of all layers, the first 20 at most.
func ParseLayers(layers ...Layer) (Policy, Sources, error) { return parseLayers(nil, layers) }

// parseLayers parses layers, of which the topmost is held to writers unless those are nil.
func parseLayers(writers *Writers, layers []Layer) (Policy, Sources, error) {
	for _, layer := range layers {
		if err := layer.check(); err != nil {
			return Policy{}, nil, err
		}
	}
	p := newParser(begin(layers))
	p.writers = writers
	p.parse()
	if len(p.problems) > 0 {
		return Policy{}, nil, p.err()
	}
	// What is stored is the whole policy, and it must be possible to parse that again.
	if whole := len(p.policy.Document()); whole > maxBytes {
		return Policy{}, nil, p.layer.tooLarge(whole, " with its defaults")
	}
	return p.policy, p.sources, nil
}

func (l Layer) isEmpty() bool { return len(bytes.TrimSpace(l.Document)) == 0 }

// check returns an error if the document is too large, or is not JSON.
func (l Layer) check() error {
	if len(l.Document) > maxBytes {
		return l.tooLarge(len(l.Document), "")
	}
	if l.isEmpty() {
		return nil
	}
	if err := rawjson.Check(l.Document, session.JSONLimits); err != nil {
		return l.invalid("invalid_json", fmt.Sprintf("the policy must be JSON: %s", err))
	}
	return nil
}

func (l Layer) tooLarge(size int, how string) error {
	return l.invalid(OutOfRange, fmt.Sprintf("the policy has %d bytes%s: the limit is %d", size, how, maxBytes))
}

func (l Layer) invalid(code, detail string) error {
	problem := session.Problem{Pointer: l.Pointer, Code: code, Detail: detail}
	return &session.InvalidError{Code: "invalid_request", Problems: []session.Problem{problem}}
}

// begin returns the profile to begin from and the layers that count on top of it: those below the topmost layer that
// names a profile do not.
func begin(layers []Layer) (Policy, []Layer) {
	base := "default"
	for i, layer := range slices.Backward(layers) {
		if name, ok := profileOf(layer.Document); ok {
			base, layers = name, layers[i:]
			break
		}
	}
	return profileOrDefault(base).clone(), slices.DeleteFunc(slices.Clone(layers), Layer.isEmpty)
}

// profileOf returns the profile that a document names, whether or not it exists.
func profileOf(document []byte) (name string, ok bool) {
	if len(bytes.TrimSpace(document)) == 0 || document[rawjson.Start(document)] != '{' {
		return "", false
	}
	for key, value := range rawjson.Members(document, rawjson.Start(document)) {
		if rawjson.KeyIs(document, key, "profile") && document[value.Start] == '"' {
			text, _ := rawjson.Unquote(nil, value.Of(document))
			return cmp.Or(profileAliases[string(text)], string(text)), true
		}
	}
	return "", false
}

// Merge changes a layer's document by a JSON merge patch (RFC 7396). A null stays in the document: it makes a field
// that of the layer below, and takes a tool out of a table. Both arguments are JSON objects, or empty.
func Merge(old, patch []byte) []byte {
	old, patch = canonical(bytes.TrimSpace(old)), canonical(bytes.TrimSpace(patch))
	if len(old) == 0 {
		return patch
	}
	if len(patch) == 0 {
		return old
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

// The names of the layers above a profile, as Sources has them.
const (
	TenantLayer  = "tenant"
	SessionLayer = "session"
)

// Resolve puts a session's own layer, nil if it has none, on top of its tenant's. pointer is that of the topmost of the
// two in the caller's document. The error is that of ParseLayers.
func Resolve(tenant, own json.RawMessage, pointer string) (Policy, Sources, error) {
	return parseLayers(nil, layersOf(tenant, own, pointer))
}

func layersOf(tenant, own json.RawMessage, pointer string) []Layer {
	if own == nil {
		return []Layer{{Name: TenantLayer, Document: tenant, Pointer: pointer}}
	}
	return []Layer{
		{Name: TenantLayer, Document: tenant},
		{Name: SessionLayer, Document: own, Pointer: pointer},
	}
}

// ResolveStored resolves, like Resolve, a policy that is to be stored.
func ResolveStored(tenant, own json.RawMessage, pointer string) (session.Policy, error) {
	return (*Writers)(nil).ResolveStored(tenant, own, pointer)
}

// Stored returns the policy as the database keeps it, without the layer that it was made of.
func (p Policy) Stored() session.Policy {
	return session.Policy{
		Trigger:  p.Trigger,
		Hard:     p.Hard,
		CacheTTL: time.Duration(p.Cache.TTLSeconds) * time.Second,
		Document: p.Document(),
	}
}

// StoredDefault returns the policy of a new tenant: a layer that changes nothing of the default profile.
func StoredDefault() session.Policy {
	stored := Default().Stored()
	stored.Patch = json.RawMessage(`{}`)
	return stored
}
