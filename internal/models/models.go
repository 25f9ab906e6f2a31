// Package models has the context windows of well-known models and what their providers document about prompt caches.
//
// Start at Embedded, the registry that is built in (models.json, each figure with its source and date), and at Find.
// Extend merges an operator's own file over it; parse.go has the rules for such a file. Nothing here is guessed: a
// model that is not in the registry is not found, and a figure that its provider does not document is 0. It is pure and
// owns no table.
package models

import (
	"cmp"
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/varve-dev/varve/internal/spelling"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Model describes a model.
type Model struct {
	ID            string   `json:"id"`
	Provider      string   `json:"provider"`
	Aliases       []string `json:"aliases" schema:"type: [array, 'null']"`
	ContextTokens int      `json:"context_tokens"` // input and output together
	// if the provider limits the input separately, else 0
	MaxInputTokens  int `json:"max_input_tokens"`
	MaxOutputTokens int `json:"max_output_tokens"` // 0 if it is not documented
	// the provider's prompt cache; prices are relative to an uncached token, whose price is 1; null if unknown
	Cache *Cache `json:"cache"`
	// what the server of the model takes, where its name does not tell
	Dialect string   `json:"dialect,omitempty"`
	Sources []Source `json:"sources" schema:"type: [array, 'null']"`
}

// Window returns the largest number of tokens of a session of the model: its input, if that has its own bound.
func (m *Model) Window() int {
	if m.MaxInputTokens > 0 {
		return m.MaxInputTokens
	}
	return m.ContextTokens
}

// Cache describes a provider's prompt cache: lifetimes since the last use, and prices relative to an uncached input
// token. 0 is unknown.
type Cache struct {
	ShortSeconds   int     `json:"short_seconds"` // without asking
	LongSeconds    int     `json:"long_seconds"`  // at most, where the request asks for it
	ReadPrice      float64 `json:"read_price"`
	WritePrice     float64 `json:"write_price"`
	LongWritePrice float64 `json:"long_write_price"`
}

// Source is the source of a model's figures. Date is the source's own date or, if it has none, the day on which it was
// read.
type Source struct {
	Of   string `json:"of"` // window, cache
	Name string `json:"name"`
	Date string `json:"date"`
}

// Registry is an immutable set of models.
type Registry struct {
	models    []Model // by provider and id
	names     map[string]int
	providers map[string][]string         // a provider's other names, as prefixes of its models' ids
	dialects  map[string]provider.Dialect // by names in lower case
}

// Dialect returns the dialect that the entry of a model with this very name has, in any case; "" for none.
func (r *Registry) Dialect(name string) provider.Dialect {
	if len(r.dialects) == 0 {
		return ""
	}
	return r.dialects[strings.ToLower(name)]
}

//go:embed models.json
var embedded []byte

// Embedded returns the built-in registry, which is read once.
func Embedded() *Registry { return builtIn() }

var builtIn = sync.OnceValue(func() *Registry {
	r, err := (&Registry{}).Extend(embedded)
	if err != nil {
		panic(err) // a test holds models.json to the rules
	}
	return r
})

// Models returns all models, by provider and id.
func (r *Registry) Models() []Model { return slices.Clone(r.models) }

// Find looks a model up by its id or an alias, in any case. A version behind @, a date (-2024-08-06 or -20240806) and
// the model's own provider before a slash, with or without a gateway before that, may be there too. Another provider's
// name is not skipped: the provider that serves a model decides the size of its window.
func (r *Registry) Find(name string) (m Model, ok bool) {
	name = strings.ToLower(name)
	slash := strings.LastIndexByte(name, '/')
	id := name[slash+1:]
	for _, candidate := range []string{name, id, undated(id)} {
		i, known := r.names[candidate]
		if known && (slash < 0 || candidate == name || r.provides(name[:slash], r.models[i].Provider)) {
			return r.models[i], true
		}
	}
	return Model{}, false
}

var version = regexp.MustCompile(`(@[^@/]+|-\d{4}-\d{2}-\d{2}|-\d{8})$`)

// undated returns an id without its version, and without the date before that.
func undated(id string) string {
	return version.ReplaceAllString(version.ReplaceAllString(id, ""), "")
}

// provides reports whether a prefix ends in a name of the provider.
func (r *Registry) provides(prefix, provider string) bool {
	named := prefix[strings.LastIndexByte(prefix, '/')+1:]
	names := append([]string{provider}, r.providers[provider]...)
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(named, name) })
}

// Near returns the ids of up to n models whose names are similar to one that was not found, the most similar first.
func (r *Registry) Near(name string, n int) (ids []string) {
	name = undated(strings.ToLower(name[strings.LastIndexByte(name, '/')+1:]))
	type near struct {
		id       string
		distance int
	}
	var found []near
	for known, i := range r.names {
		if d := spelling.Distance(name, known); d <= len(known)/3 {
			found = append(found, near{r.models[i].ID, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.id, b.id))
	})
	for _, f := range found {
		if len(ids) < n && !slices.Contains(ids, f.id) {
			ids = append(ids, f.id)
		}
	}
	return ids
}
