package conformance

import (
	"maps"
	"slices"

	"github.com/varve-dev/varve/internal/compact/text"
)

// values are what a wording may name.
type values map[string]string

// fill writes a wording with its values, which may be no others.
func fill(wording string, v values) string {
	template, err := text.Parse(wording, slices.Sorted(maps.Keys(v))...)
	if err != nil {
		panic(err)
	}
	return string(template.Append(nil, func(dst []byte, name string) []byte { return append(dst, v[name]...) }))
}
