package policy

import (
	"embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// documents are the profiles: default.json is a complete policy, each of the others changes it.
//
//go:embed profiles
var documents embed.FS

// profileNames lists the profiles in the order of the documentation: our default, and one for each of the systems that
// Varve unites, with that system's documented numbers and wording. docs/compatibility.md lists where Varve differs.
var profileNames = []string{"default", "tool-compaction", "cortex", "falai", "llm-proxy", "codelia"}

// profiles reads the parsed documents by name, once.
var profiles = sync.OnceValue(func() map[string]Policy {
	base := readProfile("default", emptyPolicy())
	all := map[string]Policy{}
	for _, name := range profileNames {
		all[name] = readProfile(name, base)
	}
	return all
})

// Profiles lists the names of all profiles.
func Profiles() []string { return slices.Clone(profileNames) }

// Profile returns the named policy. The error lists the names of all profiles.
func Profile(name string) (Policy, error) {
	if !slices.Contains(profileNames, name) {
		return Policy{}, fmt.Errorf("there is no profile %q; there are %s", name, strings.Join(profileNames, ", "))
	}
	return profileOrDefault(name).clone(), nil
}

// Default returns the policy of a tenant that has none.
func Default() Policy { return profileOrDefault("default").clone() }

// profileOrDefault returns the named policy, or the default one if there is no profile of that name. Its tables are
// shared: a caller that changes them must clone it.
func profileOrDefault(name string) Policy {
	all := profiles()
	if p, ok := all[name]; ok {
		return p
	}
	return all["default"]
}

// readProfile parses the document of a profile on top of base.
func readProfile(name string, base Policy) Policy {
	document, err := documents.ReadFile("profiles/" + name + ".json")
	if err != nil {
		panic(err)
	}
	p := newParser(base.clone(), []Layer{{Name: profileSource + name, Document: document}})
	p.parse()
	if len(p.problems) > 0 {
		panic(fmt.Sprintf("profile %s: %v", name, p.err()))
	}
	return p.policy
}

// emptyPolicy returns a policy of zeros, empty lists and empty tables.
func emptyPolicy() (p Policy) {
	for _, leaf := range eachField(reflect.ValueOf(&p).Elem(), "") {
		switch leaf.Kind() {
		case reflect.Slice:
			leaf.Set(reflect.MakeSlice(leaf.Type(), 0, 0))
		case reflect.Map:
			leaf.Set(reflect.MakeMap(leaf.Type()))
		}
	}
	return p
}

// clone returns a copy with tables of its own. Lists are shared: they are replaced, never changed.
func (p Policy) clone() Policy {
	for _, leaf := range eachField(reflect.ValueOf(&p).Elem(), "") {
		if leaf.Kind() == reflect.Map {
			table := reflect.MakeMapWithSize(leaf.Type(), leaf.Len())
			for entries := leaf.MapRange(); entries.Next(); {
				table.SetMapIndex(entries.Key(), entries.Value())
			}
			leaf.Set(table)
		}
	}
	return p
}
