// Package models decides which model a name means, and knows its facts: context windows, what its provider documents
// about prompt caches, and in what it differs from others of its format.
//
// Start at Of, which answers for any name, and at Registry.Find, which answers for known models alone. models.json is
// built in, each figure with its source and date; Extend merges an operator's own file over it (parse.go has the rules
// for such a file, litellm.go reads LiteLLM's), and Use puts a registry in force for the whole process. names.go has
// the rules for spellings. A figure that its provider does not document is 0. The package is pure and owns no table.
package models

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/varve-dev/varve/internal/spelling"
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
	Dialect string `json:"dialect,omitempty"`
	// the id of the model that this is another offer of, which reads and writes the same signatures
	SameAs  string   `json:"same_as,omitempty"`
	Sources []Source `json:"sources" schema:"type: [array, 'null']"`
	Facts
}

// Facts are what requests to a model must keep to. A model that is not known has those of its relatives.
type Facts struct {
	// whose tokens its tokens are like: claude, gpt, gemini, …; "" if unknown
	Family string `json:"family,omitempty"`
	// images that one request may have; 0 if it is not documented
	MaxImages int `json:"max_images,omitempty"`
	// a request may not end with a message of the assistant
	RefusesPrefill bool `json:"refuses_prefill,omitempty"`
	// messages of the system may stand between others
	SystemInMiddle bool `json:"system_in_middle,omitempty"`
	// a signature of thinking holds for what stood before it alone
	BindsThinking bool `json:"binds_thinking,omitempty"`
}

// Window returns the largest number of tokens of a session of the model: its input, if that has its own bound. It is 0
// for a model that is not known.
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

// Registry is a set of models that does not change. Its memory of names that were asked for is bounded.
type Registry struct {
	models    []Model             // by provider and id
	names     map[string]int      // of models, by key
	exact     map[string]int      // of models, by id and aliases in lower case
	providers map[string][]string // a provider's other names
	families  map[string][]string // what the names of a family begin with
	vendors   map[string]bool     // all names of providers and regions, which stand before names of models

	asked sync.Map // what Of has answered: *Model by name
	kept  atomic.Int32
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

var inForce atomic.Pointer[Registry]

// Current returns the registry that this process uses: the built-in one until Use.
func Current() *Registry {
	if r := inForce.Load(); r != nil {
		return r
	}
	return Embedded()
}

// Use puts a registry in force for the process.
func Use(r *Registry) { inForce.Store(r) }

// Of returns what the current registry knows of a model, and for one that it does not know, the name in its plain form
// and the facts of its relatives.
func Of(name string) *Model { return Current().Of(name) }

// Canonical returns the id of the model that a name means: names that mean the same model have the same. The id of a
// model that is not known is its name without what platforms put around it.
func Canonical(name string) string {
	m := Of(name)
	return cmp.Or(m.SameAs, m.ID)
}

// maxAsked bounds the names that a registry remembers.
const maxAsked = 4096

// Of does for one registry what the function Of does.
func (r *Registry) Of(name string) *Model {
	if m, ok := r.asked.Load(name); ok {
		return m.(*Model)
	}
	m, known := r.Find(name)
	if !known {
		m = Model{ID: plainName(name, r.vendors)}
		if _, served, ok := strings.Cut(name, ":"); ok && r.familyOf(m.ID) == "" {
			if id := plainName(served, r.vendors); r.familyOf(id) != "" {
				m.ID = id
			}
		}
		m.Facts = r.factsLike(m.ID)
	}
	if r.kept.Load() < maxAsked && len(name) <= maxName {
		r.kept.Add(1)
		r.asked.Store(strings.Clone(name), &m)
	}
	return &m
}

// factsLike returns the facts of the known model of the same family whose name has most of its beginning in common; of
// several, the one that comes last, which is the newest.
func (r *Registry) factsLike(id string) Facts {
	family := r.familyOf(id)
	best := Facts{Family: family}
	common, last := "", ""
	for k, i := range r.names {
		if m := &r.models[i]; m.Family == family && family != "" {
			shared := k[:sharedPrefix(k, id)]
			if len(shared) > len(common) || len(shared) == len(common) && k > last {
				best = m.Facts
				common, last = shared, k
			}
		}
	}
	return best
}

func sharedPrefix(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// familyOf returns the family whose names begin like a key, "" for none.
func (r *Registry) familyOf(k string) string {
	for family, begins := range r.families {
		if slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(k, begin) }) {
			return family
		}
	}
	return ""
}

// Models returns all models, by provider and id.
func (r *Registry) Models() []Model { return slices.Clone(r.models) }

// Dialect returns the dialect that the entry of a model with this very name has, in any case; "" for none.
func (r *Registry) Dialect(name string) string {
	if i, ok := r.exact[strings.ToLower(name)]; ok {
		return r.models[i].Dialect
	}
	return ""
}

// Find looks a model up by any of its names: as a provider, a platform or a gateway spells it.
func (r *Registry) Find(name string) (m Model, ok bool) {
	for candidate := range spellings(name, r.vendors) {
		i, found := r.exact[candidate]
		if !found {
			i, found = r.names[key(candidate)]
		}
		if found {
			return withSuffix(r.models[i], name), true
		}
	}
	return Model{}, false
}

// Near returns the ids of up to n models whose names are similar to one that was not found, the most similar first.
func (r *Registry) Near(name string, n int) (ids []string) {
	if len(name) > maxName {
		return nil
	}
	name = plainName(name, r.vendors)
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
