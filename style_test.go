package varve

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limits of the house's style. Lists are exempt from maxFunctionLines by name, each with its reason.
const (
	maxColumns          = 120
	maxFileLines        = 500
	maxFunctionLines    = 80
	maxTupleAssignments = 5 // in the whole tree, of three or more values
)

var longLists = map[string]string{
	"routes": "the list of all routes is read as a table",
}

type sourceFile struct {
	path string
	text []byte
	fset *token.FileSet
	ast  *ast.File
	test bool
}

// sources returns all Go files that git knows, parsed with their comments.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	var files []sourceFile
	for _, path := range strings.Fields(string(out)) {
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, sourceFile{path: path, text: text, fset: fset, ast: parsed, test: strings.HasSuffix(path, "_test.go")})
	}
	if len(files) < 100 {
		t.Fatalf("found %d Go files only", len(files))
	}
	return files
}

func TestFilesFunctionsAndLinesAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range sources(t) {
		lines := bytes.Split(file.text, []byte("\n"))
		if len(lines) > maxFileLines {
			t.Errorf("%s has %d lines; the limit is %d", file.path, len(lines), maxFileLines)
		}
		if file.test || ast.IsGenerated(file.ast) {
			continue
		}
		for i, line := range lines {
			if columns := utf8.RuneCount(bytes.ReplaceAll(line, []byte("\t"), []byte("    "))); columns > maxColumns {
				t.Errorf("%s:%d has %d columns; the limit is %d", file.path, i+1, columns, maxColumns)
			}
		}
		for _, decl := range file.ast.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || longLists[function.Name.Name] != "" {
				continue
			}
			n := file.fset.Position(function.End()).Line - file.fset.Position(function.Pos()).Line + 1
			if n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines; the limit is %d", file.path, function.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

func TestStatementsArePlain(t *testing.T) {
	t.Parallel()
	var tuples []string
	for _, file := range sources(t) {
		if file.test {
			continue
		}
		ast.Inspect(file.ast, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.AssignStmt:
				if len(n.Lhs) >= 3 && len(n.Rhs) >= 3 {
					tuples = append(tuples, fmt.Sprint(file.fset.Position(n.Pos())))
				}
			case *ast.SwitchStmt:
				if n.Init != nil && n.Tag == nil {
					t.Errorf("%s: a switch without a tag must not have an init statement", file.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
	if len(tuples) > maxTupleAssignments {
		t.Errorf("%d assignments of three or more values at once; the limit is %d:\n%s",
			len(tuples), maxTupleAssignments, strings.Join(tuples, "\n"))
	}
}
