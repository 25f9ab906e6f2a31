package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mark is the line of a part of the description behind which its schemas of Go types are.
const mark = "    # What follows is made of the Go types by `go test ./internal/api/openapi -update`.\n"

// folders are where the types of answers are, below internal; a feature's own folder comes before them.
var folders = []string{
	"protocol", "session", "audit", "archive", "compact", "compact/manifest", "wire", "compactor", "api", "api/stateless",
	"api/openai", "due", "models",
}

// named are the schemas that have another name than their types.
var named = map[string]string{
	"Action": "compact.Action", "Appended": "protocol.Appended", "AuditAction": "audit.Action", "AuditKind": "audit.Kind",
	"AuditRow": "audit.Entry", "Cache": "compactor.Cache", "ChangeKind": "manifest.Kind",
	"Decision": "compact.Decision", "Import": "protocol.Import", "Manifest": "protocol.Manifest",
	"Model": "api.modelAnswer", "ModelCache": "models.Cache", "PolicyState": "protocol.Policy",
	"Result": "protocol.Result", "Session": "protocol.Session", "Standing": "manifest.State",
	"Summary": "protocol.Summary", "TokenCount": "api.tokensAnswer", "Upload": "upload.Answer",
	"Why": "compactor.Decision",
}

// TestTheSchemasAreThoseOfTheTypes holds the schemas in the description that no one wrote to the types of that name:
// those to which something refers that is not there.
func TestTheSchemasAreThoseOfTheTypes(t *testing.T) {
	t.Parallel()
	g := &generator{packages: map[string]*goPackage{}, known: map[string]bool{}}
	features, err := filepath.Glob("../../*/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Concat([]string{"openapi.yaml"}, features) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		written, made, _ := strings.Cut(string(text), mark)
		dirs := folders
		if path != "openapi.yaml" {
			dirs = append([]string{filepath.Base(filepath.Dir(path))}, folders...)
		}
		want, err := g.schemas(written, dirs)
		switch {
		case err != nil:
			t.Errorf("%s: %v", path, err)
		case want == made:
		case *update:
			if err := os.WriteFile(path, []byte(written+mark+want), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("the schemas of %s are not those of the types: go test ./internal/api/openapi -update", path)
		}
	}
}

// generator makes schemas of Go types. It reads their source: the comment of a field is its description, and the tag
// `schema` adds what a type cannot say, as members of the schema ("minimum: 1, maximum: 9"), or names a schema ("SHA256",
// "[]Stage"); "optional" is a member that answers of before may lack.
type generator struct {
	packages map[string]*goPackage
	known    map[string]bool // names of schemas, written or made
}

// goPackage is the source of a package of ours.
type goPackage struct {
	folder string
	types  map[string]*ast.TypeSpec
	values map[string][]string // of the constants of a type of strings
}

var (
	referenceTo  = regexp.MustCompile(`#/components/schemas/(\w+)`)
	componentKey = regexp.MustCompile(`(?m)^    ([A-Z]\w+):`)
)

// schemas returns the schemas of a part of the description that are to be made.
func (g *generator) schemas(written string, dirs []string) (string, error) {
	_, below, _ := strings.Cut(written, "\n  schemas:\n")
	for _, m := range componentKey.FindAllStringSubmatch(below, -1) {
		g.known[m[1]] = true
	}
	made := map[string]string{}
	for todo := written; todo != ""; {
		var next strings.Builder
		for _, m := range referenceTo.FindAllStringSubmatch(todo, -1) {
			if g.known[m[1]] {
				continue
			}
			g.known[m[1]] = true
			text, err := g.schema(m[1], dirs)
			if err != nil {
				return "", err
			}
			made[m[1]] = text
			next.WriteString(text)
		}
		todo = next.String()
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(made)) {
		all.WriteString(made[name])
	}
	return all.String(), nil
}

// schema returns the text of one schema.
func (g *generator) schema(name string, dirs []string) (string, error) {
	in, goName, _ := strings.Cut(cmp.Or(named[name], "."+name), ".")
	var found []*goPackage
	for _, dir := range dirs {
		p, err := g.load(dir)
		if err != nil {
			return "", err
		}
		if spec := p.types[goName]; spec != nil && isAnswer(spec) && (in == "" || in == filepath.Base(dir)) {
			found = append(found, p)
		}
	}
	if len(found) == 1 {
		return g.ofType(name, found[0], found[0].types[goName])
	}
	if len(found) > 1 {
		return "", fmt.Errorf("%s is a type of %s and of %s: give one another name", name, found[0].folder, found[1].folder)
	}
	if of, ok := strings.CutSuffix(name, "List"); ok {
		return fmt.Sprintf(`    %s:
      allOf: [{$ref: '#/components/schemas/List'}]
      properties:
        data: {items: {$ref: '#/components/schemas/%s'}}
      unevaluatedProperties: false
`, name, of), nil
	}
	return "", fmt.Errorf("there is no schema %s, and no type of that name in %v", name, dirs)
}

// isAnswer reports whether a type can be written as JSON by our names: a struct whose fields have none is something else.
func isAnswer(spec *ast.TypeSpec) bool {
	fields, ok := spec.Type.(*ast.StructType)
	return !ok || slices.ContainsFunc(fields.Fields.List, func(f *ast.Field) bool { return f.Tag != nil || len(f.Names) == 0 })
}

// ofType returns the schema of a type, as a component.
func (g *generator) ofType(name string, p *goPackage, spec *ast.TypeSpec) (string, error) {
	head := "    " + name + ":\n"
	if about := strings.TrimPrefix(said(spec.Doc, true), spec.Name.Name+" "); about != "" {
		about = strings.TrimPrefix(strings.TrimPrefix(about, "is "), "are ")
		head += "      description: " + quoted(about) + "\n"
	}
	fields, ok := spec.Type.(*ast.StructType)
	if !ok {
		if values := p.values[spec.Name.Name]; len(values) > 0 {
			return head + fmt.Sprintf("      enum: [%s]\n", strings.Join(values, ", ")), nil
		}
		of, err := g.of(p, spec.Type)
		return head + "      " + strings.Join(of, "\n      ") + "\n", err
	}
	var required, properties []string
	if err := g.fields(p, fields, &required, &properties); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	head += "      type: object\n"
	if len(required) > 0 {
		head += "      required: [" + strings.Join(required, ", ") + "]\n"
	}
	return head + "      properties:\n" + strings.Join(properties, "") + "      additionalProperties: false\n", nil
}

// fields adds the members of a struct, those of what it embeds among them.
func (g *generator) fields(p *goPackage, of *ast.StructType, required, properties *[]string) error {
	for _, field := range of.Fields.List {
		tag := reflect.StructTag("")
		if field.Tag != nil {
			text, _ := strconv.Unquote(field.Tag.Value)
			tag = reflect.StructTag(text)
		}
		name, options, _ := strings.Cut(tag.Get("json"), ",")
		if name == "-" || len(field.Names) > 0 && !field.Names[0].IsExported() {
			continue
		}
		if name == "" {
			in, spec, err := g.find(p, field.Type)
			if err == nil {
				err = g.fields(in, spec.Type.(*ast.StructType), required, properties)
			}
			if err != nil {
				return err
			}
			continue
		}
		optional := strings.Contains(options, "omit")
		more, old := strings.CutPrefix(tag.Get("schema"), "optional")
		schema, err := g.of(p, field.Type)
		if err != nil && more == "" {
			return fmt.Errorf("%s: %w", name, err)
		}
		schema = g.adapted(p, field, schema, more, optional)
		if !optional && !old {
			*required = append(*required, name)
		}
		*properties = append(*properties, fmt.Sprintf("        %s: {%s}\n", name, strings.Join(schema, ", ")))
	}
	return nil
}

// adapted returns the schema of a field: what its type has, what its tag says, null for a pointer, and its comment.
func (g *generator) adapted(p *goPackage, field *ast.Field, schema []string, tag string, optional bool) []string {
	if regexp.MustCompile(`^[A-Z]\w*$`).MatchString(tag) {
		schema, tag = []string{refTo(tag)}, ""
	} else if of, ok := strings.CutPrefix(tag, "[]"); ok {
		schema, tag = []string{"type: array", "items: {" + refTo(of) + "}"}, ""
	}
	if tag != "" {
		schema = slices.DeleteFunc(schema, func(member string) bool {
			return strings.Contains(tag, member[:strings.IndexByte(member, ':')+1]) || strings.Contains(tag, "$ref")
		})
		schema = append(schema, tag)
	}
	if _, pointer := field.Type.(*ast.StarExpr); pointer && !optional && !strings.Contains(tag, "null") {
		if kind, ok := strings.CutPrefix(schema[0], "type: "); ok {
			schema[0] = "type: [" + kind + ", 'null']"
		} else {
			schema = []string{"oneOf: [{" + strings.Join(schema, ", ") + "}, {type: 'null'}]"}
		}
	}
	if text := cmp.Or(said(field.Doc, false), said(field.Comment, false)); text != "" {
		schema = append(schema, "description: "+quoted(text))
	}
	return schema
}

// of returns the members of the schema of a type.
func (g *generator) of(p *goPackage, expr ast.Expr) ([]string, error) {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return g.of(p, expr.X)
	case *ast.ArrayType:
		if elem, ok := expr.Elt.(*ast.Ident); ok && elem.Name == "byte" {
			return []string{"type: string"}, nil
		}
		of, err := g.of(p, expr.Elt)
		return []string{"type: array", "items: {" + strings.Join(of, ", ") + "}"}, err
	case *ast.MapType:
		of, err := g.of(p, expr.Value)
		return []string{"type: object", "additionalProperties: {" + strings.Join(of, ", ") + "}"}, err
	case *ast.InterfaceType:
		return nil, nil
	case *ast.Ident:
		switch kind := expr.Name; kind {
		case "string":
			return []string{"type: string"}, nil
		case "bool":
			return []string{"type: boolean"}, nil
		case "int", "int64", "int32":
			return []string{"type: integer"}, nil
		case "float64":
			return []string{"type: number"}, nil
		case "any":
			return nil, nil
		}
	case *ast.SelectorExpr:
		switch expr.X.(*ast.Ident).Name + "." + expr.Sel.Name {
		case "time.Time":
			return []string{refTo("Time")}, nil
		case "uuid.UUID":
			return []string{"type: string", "format: uuid"}, nil
		case "json.RawMessage":
			return nil, nil
		}
	}
	in, spec, err := g.find(p, expr)
	if err != nil {
		return nil, err
	}
	if _, structure := spec.Type.(*ast.StructType); structure || len(in.values[spec.Name.Name]) > 0 || g.known[spec.Name.Name] {
		full := filepath.Base(in.folder) + "." + spec.Name.Name
		for schema, of := range named {
			if of == full {
				return []string{refTo(schema)}, nil
			}
		}
		if other, taken := named[spec.Name.Name]; taken {
			return nil, fmt.Errorf("%s needs another name than that of %s", full, other)
		}
		return []string{refTo(spec.Name.Name)}, nil
	}
	return g.of(in, spec.Type)
}

// find returns a type of ours, and its package.
func (g *generator) find(p *goPackage, expr ast.Expr) (*goPackage, *ast.TypeSpec, error) {
	var name string
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return g.find(p, expr.X)
	case *ast.Ident:
		name = expr.Name
	case *ast.SelectorExpr:
		name = expr.Sel.Name
		at := slices.IndexFunc(folders, func(f string) bool { return filepath.Base(f) == expr.X.(*ast.Ident).Name })
		if at < 0 {
			return nil, nil, fmt.Errorf("the types of answers are not in package %v", expr.X)
		}
		var err error
		if p, err = g.load(folders[at]); err != nil {
			return nil, nil, err
		}
	}
	spec := p.types[name]
	if spec == nil {
		return nil, nil, fmt.Errorf("%s has no type %s", p.folder, name)
	}
	switch spec.Type.(type) {
	case *ast.Ident, *ast.SelectorExpr: // another name of a type, unless it is one of text or numbers
		if in, other, err := g.find(p, spec.Type); err == nil {
			return in, other, nil
		}
	}
	return p, spec, nil
}

// load reads the types of a package.
func (g *generator) load(folder string) (*goPackage, error) {
	if p := g.packages[folder]; p != nil {
		return p, nil
	}
	p := &goPackage{folder: folder, types: map[string]*ast.TypeSpec{}, values: map[string][]string{}}
	g.packages[folder] = p
	files, err := filepath.Glob("../../" + folder + "/*.go")
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.GenDecl); ok {
				p.add(decl)
			}
		}
	}
	return p, err
}

// add notes what a declaration declares.
func (p *goPackage) add(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Doc == nil {
				spec.Doc = decl.Doc
			}
			p.types[spec.Name.Name] = spec
		case *ast.ValueSpec:
			kind, ok := spec.Type.(*ast.Ident)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, value := range spec.Values {
				if text, ok := value.(*ast.BasicLit); ok && text.Kind == token.STRING {
					p.values[kind.Name] = append(p.values[kind.Name], text.Value)
				}
			}
		}
	}
}

func refTo(schema string) string { return "$ref: '#/components/schemas/" + schema + "'" }

// said returns a comment as a line, or its first sentence.
func said(comment *ast.CommentGroup, sentence bool) string {
	text := strings.Join(strings.Fields(comment.Text()), " ")
	if first, _, ok := strings.Cut(text, ". "); ok && sentence {
		return first
	}
	return text
}

// quoted writes text as YAML has it between quotes.
func quoted(text string) string {
	var line strings.Builder
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	_ = e.Encode(strings.TrimSuffix(text, "."))
	return strings.TrimSpace(line.String())
}
