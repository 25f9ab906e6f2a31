package varve

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGrantsNameWhatTheSchemaHas compares the files in migrations without a database: who takes a table out of the
// release's file must take it out of grants.sql, and run make schema.
func TestGrantsNameWhatTheSchemaHas(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile("migrations/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	names := func(text, pattern string) (found []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
		slices.Sort(found)
		return found
	}
	grants, schema, release := read("grants.sql"), read("schema.sql"), read("0030_release.up.sql")
	_, tables, _ := strings.Cut(grants, "ARRAY[")
	tables, _, _ = strings.Cut(tables, "]")
	_, functions, _ := strings.Cut(grants, "REVOKE ALL ON FUNCTION\n")
	functions, _, _ = strings.Cut(functions, "FROM PUBLIC")
	for what, pair := range map[string][2][]string{
		"tables of grants.sql and schema.sql":    {names(tables, `'(\w+)'`), names(schema, `CREATE (?:UNLOGGED )?TABLE public\.(\w+)`)},
		"functions of grants.sql and schema.sql": {names(functions, `(\w+)`), names(schema, `CREATE FUNCTION public\.(\w+)`)},
	} {
		for _, name := range pair[0] {
			if !slices.Contains(pair[1], name) {
				t.Errorf("%s: only the first has %s", what, name)
			}
		}
		for _, name := range pair[1] {
			if !slices.Contains(pair[0], name) {
				t.Errorf("%s: only the second has %s", what, name)
			}
		}
	}
	for _, name := range names(release, `(?m)^CREATE (?:TABLE|FUNCTION) (\w+)`) {
		if !strings.Contains(schema, " public."+name) {
			t.Errorf("schema.sql lacks %s of the release's file: run make schema", name)
		}
	}
}
