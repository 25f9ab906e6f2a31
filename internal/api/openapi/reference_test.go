package openapi

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/varve-dev/varve/internal/features"
)

var update = flag.Bool("update", false, "write docs/api.md anew")

const referencePage = "../../../docs/api.md"

// TestTheReferenceIsWhatTheDescriptionGives holds docs/api.md to the description.
func TestTheReferenceIsWhatTheDescriptionGives(t *testing.T) {
	t.Parallel()
	policy, err := os.ReadFile("../../../docs/policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var parts []Part
	for _, f := range features.All() {
		if f.Description != nil {
			parts = append(parts, Part{Source: f.Description})
		}
	}
	d, err := Load(policy, parts...)
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(d.YAML, &root); err != nil {
		t.Fatal(err)
	}
	want := reference(root.Content[0], tagsOf(t, parts))
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, withoutGone(string(got), want)); diff != "" {
		t.Errorf("%s (-want +got; go test ./internal/api/openapi -update writes it):\n%s", referencePage, diff)
	}
}

// ofFeature is below the heading of a section that is of a feature.
const ofFeature = "\n\n<!-- of a feature -->"

// tagsOf returns the tags that features have.
func tagsOf(t *testing.T, parts []Part) (names []string) {
	t.Helper()
	for _, part := range parts {
		var root yaml.Node
		if err := yaml.Unmarshal(part.Source, &root); err != nil {
			t.Fatal(err)
		}
		for _, tag := range list(root.Content[0], "tags") {
			names = append(names, value(tag, "name"))
		}
	}
	return names
}

// withoutGone returns a page without the sections of features that are not there, which a wanted page does not have.
func withoutGone(page, want string) string {
	sections := strings.Split(page, "\n## ")
	return strings.Join(slices.DeleteFunc(sections, func(section string) bool {
		heading, _, _ := strings.Cut(section, "\n")
		return strings.HasPrefix(section, heading+ofFeature) && !strings.Contains(want, "\n## "+heading+ofFeature)
	}), "\n## ")
}

// reference returns docs/api.md: the general rules, then by tag what it is and a table of its operations.
func reference(document *yaml.Node, ofFeatures []string) string {
	var page strings.Builder
	fmt.Fprintf(&page, "# HTTP API, v1\n\n<!-- of internal/api/openapi/openapi.yaml: go test ./internal/api/openapi -update -->\n\n%s\n\n",
		linked(value(get(document, "info"), "description")))
	page.WriteString("The request header `Authorization: Bearer …` has one of these:\n\n")
	for kind, scheme := range members(get(get(document, "components"), "securitySchemes")) {
		fmt.Fprintf(&page, "* %s `%s`: %s\n", kind, value(scheme, "bearerFormat"), oneLine(value(scheme, "description")))
	}
	paths := get(document, "paths")
	for _, tag := range list(document, "tags") {
		fmt.Fprintf(&page, "\n## %s", value(tag, "name"))
		if slices.Contains(ofFeatures, value(tag, "name")) {
			page.WriteString(ofFeature)
		}
		fmt.Fprintf(&page, "\n\n%s\n\n|operation|needs|does|\n|---|---|---|\n", linked(value(tag, "description")))
		for _, op := range operations(paths, value(tag, "name")) {
			fmt.Fprintf(&page, "|`%s %s`|%s|%s|\n", op.Method, op.Path, rights(op.Node), value(op.Node, "summary"))
		}
	}
	return page.String()
}

// rights says which scopes of a key an operation needs, and which of a session token are enough.
func rights(op *yaml.Node) string {
	var ways []string
	for _, way := range list(op, "security") {
		for kind, scopes := range members(way) {
			var names []string
			for _, scope := range scopes.Content {
				names = append(names, "`"+scope.Value+"`")
			}
			text := strings.Join(names, " and ")
			switch {
			case kind == "operator":
				text = "operators"
			case text == "":
				text = "any " + kind
			case kind == "token":
				text = "token " + text
			}
			ways = append(ways, text)
		}
	}
	if len(ways) == 0 {
		return "no key"
	}
	return strings.Join(ways, ", ")
}

// oneLine returns a description without its paragraphs.
func oneLine(text string) string { return strings.Join(strings.Fields(linked(text)), " ") }

// linked makes links of the names of other pages.
func linked(text string) string {
	return regexp.MustCompile("`docs/([a-z]+\\.md)(#[a-z-]+)?`").ReplaceAllString(strings.TrimSpace(text), "[$1]($1$2)")
}
