package audit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/varve-dev/varve/internal/audit"
)

// TestEveryActionIsListed compares the constants of the source with the list by which filters are checked.
func TestEveryActionIsListed(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "audit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []audit.Action
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return true
		}
		if kind, is := spec.Type.(*ast.Ident); is && kind.Name == "Action" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, audit.Action(text))
		}
		return true
	})
	listed := audit.Actions()
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) < 40 || !slices.Equal(declared, listed) {
		t.Errorf("declared: %q\nlisted:   %q", declared, listed)
	}
}
