package openapi

import (
	"fmt"
	"go/ast"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// routesFile is what the client has of the description.
const routesFile = "../../../client/operations.go"

// TestTheClientsRoutesAreThoseOfTheDescription holds the client's constants to the operations of the core whose answer
// is a type that the client may import, is a list of one, or has no body.
func TestTheClientsRoutesAreThoseOfTheDescription(t *testing.T) {
	t.Parallel()
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		t.Fatal(err)
	}
	document := root.Content[0]
	g := &generator{packages: map[string]*goPackage{}, known: map[string]bool{}}
	var lines []string
	for path := range members(get(document, "paths")) {
		below, ok := strings.CutPrefix(path, "/v1/")
		if !ok || strings.HasPrefix(below, "conversations") {
			continue
		}
		for method, op := range members(get(get(document, "paths"), path)) {
			if method == "parameters" {
				continue
			}
			if kind := g.routeKind(t, document, op); kind != "" {
				id := value(op, "operationId")
				route := strings.ToUpper(method) + " " + below
				if strings.HasPrefix(kind, "ListRoute") {
					route = below
				}
				lines = append(lines, fmt.Sprintf("\t%s %s = %q\n", strings.ToUpper(id[:1])+id[1:], kind, route))
			}
		}
	}
	slices.Sort(lines)
	text, err := format.Source([]byte(`// Code generated from internal/api/openapi/openapi.yaml by its tests with -update; DO NOT EDIT.

package client

import (
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// The operations, as the description names them.
const (
` + strings.Join(lines, "") + ")\n"))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(routesFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(routesFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test ./internal/api/openapi -update writes it):\n%s", routesFile, diff)
	}
}

// routeKind returns the type of the client's constant of an operation, "" if it has none.
func (g *generator) routeKind(t *testing.T, document, op *yaml.Node) string {
	kind := ""
	for status, response := range members(get(op, "responses")) {
		response = component(document, response)
		switch schema := value(get(get(get(response, "content"), "application/json"), "schema"), "$ref"); {
		case status[0] != '2':
		case status == "204" && kind == "":
			kind = "Effect"
		case schema != "":
			if of := g.answer(t, strings.TrimSuffix(name(schema), "List")); of == "" {
				return ""
			} else if strings.HasSuffix(schema, "List") {
				return "ListRoute[" + of + "]"
			} else {
				return "Route[" + of + "]"
			}
		}
	}
	return kind
}

// answer returns the type of a schema as the client writes it, "" if it has none.
func (g *generator) answer(t *testing.T, schema string) string {
	in, goName, _ := strings.Cut(named[schema], ".")
	if goName == "" {
		goName = schema
	}
	for _, folder := range []string{"protocol", "session", "audit"} {
		p, err := g.load(folder)
		if err != nil {
			t.Fatal(err)
		}
		if spec := p.types[goName]; spec != nil && isAnswer(spec) && (in == "" || in == filepath.Base(folder)) &&
			ast.IsExported(goName) {
			return folder + "." + goName
		}
	}
	return ""
}
