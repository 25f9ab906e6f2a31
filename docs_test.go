package varve

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// section returns the part of a document from a heading to the next one of its level.
func section(t *testing.T, path, heading string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", path, heading)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

func TestTheAnswersOfTheDesignNamePathsThatExist(t *testing.T) {
	t.Parallel()
	rows := 0
	for line := range strings.Lines(section(t, "docs/design.md", "Where is …?")) {
		question, path, found := strings.Cut(strings.Trim(line, "| \n"), " | ")
		if !found || !strings.HasSuffix(question, "?") {
			continue
		}
		rows++
		paths := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(path, -1)
		if len(paths) == 0 {
			t.Errorf("%s names no path", question)
		}
		for _, match := range paths {
			if _, err := os.Stat(match[1]); err != nil {
				t.Errorf("%s %v", question, err)
			}
		}
	}
	if rows < 10 {
		t.Errorf("docs/design.md answers %d questions, not 10", rows)
	}
}

// TestTheFlowsOfTheDesignAreThoseOfTheCode holds the lists of functions in docs/design.md to the code: each function
// exists and is listed once. That it runs, and that nothing else does, is held by test/flows.
func TestTheFlowsOfTheDesignAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	exists := functions(t)
	for heading, limit := range map[string]int{"One append": 22, "One compaction": 28, "One read": 18} {
		var listed []string
		for _, m := range regexp.MustCompile("(?m)^\\d+\\. `([^`]+)`").FindAllStringSubmatch(section(t, "docs/design.md", heading), -1) {
			listed = append(listed, m[1])
		}
		if len(listed) < 5 || len(listed) > limit {
			t.Errorf("%s lists %d functions; it must list 5 to %d", heading, len(listed), limit)
		}
		for i, name := range listed {
			if !exists[name] {
				t.Errorf("%s lists %s, which does not exist", heading, name)
			}
			if slices.Contains(listed[:i], name) {
				t.Errorf("%s lists %s twice", heading, name)
			}
		}
	}
}

// functions returns the functions of the product, as package.Function or package.Type.Method.
func functions(t *testing.T) map[string]bool {
	found := map[string]bool{}
	for _, file := range sources(t) {
		if file.test {
			continue
		}
		for _, decl := range file.ast.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			name := function.Name.Name
			if function.Recv != nil {
				receiver := function.Recv.List[0].Type
				if pointer, ok := receiver.(*ast.StarExpr); ok {
					receiver = pointer.X
				}
				switch generic := receiver.(type) {
				case *ast.IndexExpr:
					receiver = generic.X
				case *ast.IndexListExpr:
					receiver = generic.X
				}
				name = receiver.(*ast.Ident).Name + "." + name
			}
			found[file.ast.Name.Name+"."+name] = true
		}
	}
	return found
}

func TestRecipesNameFilesThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range regexp.MustCompile("`((?:internal|cmd|migrations|docs|bench)/[^` ]*)`").FindAllStringSubmatch(string(text), -1) {
		if strings.ContainsAny(m[1], "<>") {
			continue // a file that the recipe adds
		}
		named++
		if found, err := filepath.Glob(m[1]); err != nil || len(found) == 0 {
			t.Errorf("docs/recipes.md names %s, which does not exist", m[1])
		}
	}
	if named < 15 {
		t.Errorf("docs/recipes.md names %d files only", named)
	}
}

var link = regexp.MustCompile(`\]\(([\w./-]+)(?:#[^)]*)?\)`)

func TestLinksOfTheDocumentsLeadToFiles(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	}
}
