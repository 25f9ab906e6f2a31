package varve

import (
	"errors"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sqlText is SQL of the product, in a file of its own or in a Go file.
type sqlText struct {
	path string
	text string
}

// sqlOfTheProduct returns the SQL of the files *.sql beside the code, and of the Go files: each text that is put together
// from literals, with holes where something else is.
func sqlOfTheProduct(t *testing.T) (found []sqlText) {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "internal/**/sql/*.sql", ":(glob)internal/*/*.sql").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // git still lists a feature that was taken out
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, sqlText{path, string(text)})
	}
	return append(found, sqlOfGo(t)...)
}

// sqlBegins matches what has the keywords of a statement or of a part of one, in upper case.
var sqlBegins = regexp.MustCompile(`\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|CASE|coalesce|JOIN|WHERE)\b`)

// sqlOfGo returns the texts of the Go files that are SQL.
func sqlOfGo(t *testing.T) (found []sqlText) {
	t.Helper()
	r := sqlReader{names: map[string]ast.Expr{}, functions: map[string]*ast.FuncDecl{}}
	var files []sourceFile
	for _, file := range sources(t) {
		folder := filepath.Dir(file.path)
		isProduct := strings.HasPrefix(folder, "internal/") || strings.HasPrefix(folder, "cmd/")
		if isProduct && !file.test && !strings.HasSuffix(folder, "test") && file.ast.Name.Name != "main" {
			files = append(files, file)
			r.define(file)
		}
	}
	for _, file := range files {
		for _, text := range r.literals(file) {
			if sqlBegins.MatchString(text) {
				found = append(found, sqlText{file.path, text})
			}
		}
	}
	return found
}

// sqlReader puts texts together from literals, and from the names and functions of any package that stand for such.
type sqlReader struct {
	names     map[string]ast.Expr // by package.name
	functions map[string]*ast.FuncDecl
}

// define adds what a file declares.
func (r *sqlReader) define(file sourceFile) {
	prefix := file.ast.Name.Name + "."
	for _, decl := range file.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				r.functions[prefix+d.Name.Name] = d
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				value, ok := spec.(*ast.ValueSpec)
				for i := 0; ok && i < len(value.Values) && i < len(value.Names); i++ {
					r.names[prefix+value.Names[i].Name] = value.Values[i]
				}
			}
		}
	}
}

// literals returns the texts of a file, each as long as its parts are added.
func (r *sqlReader) literals(file sourceFile) (texts []string) {
	var visit func(node ast.Node) bool
	visit = func(node ast.Node) bool {
		switch e := node.(type) {
		case *ast.BasicLit:
			if e.Kind == token.STRING {
				texts = append(texts, r.text(e, file.ast.Name.Name, nil, 0))
			}
		case *ast.BinaryExpr:
			if e.Op != token.ADD {
				return true
			}
			texts = append(texts, r.text(e, file.ast.Name.Name, nil, 0))
			for _, call := range callsIn(e) { // their arguments may be SQL of their own
				ast.Inspect(call, visit)
			}
			return false
		}
		return true
	}
	ast.Inspect(file.ast, visit)
	return texts
}

// callsIn returns the calls among the parts that are added.
func callsIn(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.CallExpr:
		return []ast.Expr{e}
	case *ast.BinaryExpr:
		return append(callsIn(e.X), callsIn(e.Y)...)
	}
	return nil
}

// maxDepth bounds how many names and calls are followed from one text into another.
const maxDepth = 12

// text returns the text of an expression of a package, with holes where it is not made of literals. given are the texts
// of parameters.
func (r *sqlReader) text(e ast.Expr, pkg string, given map[string]string, depth int) string {
	if depth > maxDepth {
		return " " + sqlHole + " "
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return r.text(e.X, pkg, given, depth) + r.text(e.Y, pkg, given, depth)
		}
	case *ast.ParenExpr:
		return r.text(e.X, pkg, given, depth)
	case *ast.CallExpr:
		return r.returned(e, pkg, given, depth)
	case *ast.Ident, *ast.SelectorExpr:
		if id, ok := e.(*ast.Ident); ok && given[id.Name] != "" {
			return given[id.Name]
		}
		if name, in := qualified(e, pkg); r.names[name] != nil {
			return r.text(r.names[name], in, nil, depth+1)
		}
	}
	return " " + sqlHole + " "
}

// qualified returns the package.name that an expression of a package names, and that package.
func qualified(e ast.Expr, pkg string) (name, in string) {
	switch e := e.(type) {
	case *ast.Ident:
		return pkg + "." + e.Name, pkg
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			return of.Name + "." + e.Sel.Name, of.Name
		}
	}
	return "", ""
}

// returned returns what a function returns that does nothing else, or the file that statement reads.
func (r *sqlReader) returned(call *ast.CallExpr, pkg string, given map[string]string, depth int) string {
	name, in := qualified(call.Fun, pkg)
	if name == "postgres.statement" {
		file := r.text(call.Args[0], pkg, given, depth)
		text, err := os.ReadFile("internal/postgres/sql/" + file + ".sql")
		if err == nil {
			return r.replaced(string(text), call.Args[1:], pkg, given, depth)
		}
	}
	function := r.functions[name]
	if function == nil || len(function.Body.List) != 1 {
		return " " + sqlHole + " "
	}
	result, ok := function.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(result.Results) != 1 {
		return " " + sqlHole + " "
	}
	parameters := map[string]string{}
	i := 0
	for _, field := range function.Type.Params.List {
		for _, parameter := range field.Names {
			parameters[parameter.Name] = " " + sqlHole + " "
			if i < len(call.Args) {
				parameters[parameter.Name] = r.text(call.Args[i], pkg, given, depth+1)
			}
			i++
		}
	}
	return r.text(result.Results[0], in, parameters, depth+1)
}

// replaced returns a file's text with what statement puts in for its names.
func (r *sqlReader) replaced(text string, pairs []ast.Expr, pkg string, given map[string]string, depth int) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		text = strings.ReplaceAll(text, r.text(pairs[i], pkg, given, depth+1), r.text(pairs[i+1], pkg, given, depth+1))
	}
	return text
}

// readSQLSchema reads from the schema's dump which tables have a tenant.
func readSQLSchema(t *testing.T) *sqlSchema {
	t.Helper()
	dump, err := os.ReadFile("migrations/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	s := &sqlSchema{ofTenants: map[string]bool{}, ofWorkers: map[string]bool{
		"due_sessions": true, "tenant_tasks": true, "event_heads": true, "webhook_turns": true, "retention": true,
	}}
	for _, table := range regexp.MustCompile(`(?s)CREATE TABLE public\.(\w+) \((.*?)\n\)`).FindAllStringSubmatch(string(dump), -1) {
		if strings.Contains(table[2], "\n    tenant_id uuid") {
			s.ofTenants[table[1]] = true
		}
	}
	if len(s.ofTenants) < 25 {
		t.Fatalf("the schema has %d tables of tenants", len(s.ofTenants))
	}
	return s
}

func TestTheTenantIsTheFirstCondition(t *testing.T) {
	t.Parallel()
	schema := readSQLSchema(t)
	found := map[string]bool{}
	tables := 0
	for _, text := range sqlOfTheProduct(t) {
		for _, statement := range sqlStatements(sqlNodes(text.text)) {
			for _, block := range sqlBlocks(statement) {
				tables += len(block.tables)
			}
			for _, offence := range schema.tenantFirst(statement) {
				found[text.path+": "+offence] = true
			}
		}
	}
	if tables < 1000 {
		t.Errorf("the statements name %d tables only: they are not read as they were", tables)
	}
	for _, offence := range slices.Sorted(maps.Keys(found)) {
		if sqlExceptions[offence] == "" {
			t.Errorf("%s\n(begin the condition with tenant_id: row-level security and the indexes want it)", offence)
		}
	}
	for offence := range sqlExceptions {
		path, _, _ := strings.Cut(offence, ":")
		if _, err := os.Stat(filepath.Dir(path)); err == nil && !found[offence] { // a feature may be taken out
			t.Errorf("remove this exception, there is no such statement any more: %s", offence)
		}
	}
}
