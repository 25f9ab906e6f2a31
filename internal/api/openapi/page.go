package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

// page is the data of the template.
type page struct {
	spec
	Style template.CSS
	Rooms []room
}

// room is a tag with its operations.
type room struct {
	Name, Description string
	Operations        []shown
}

// shown is an operation with the members of its path.
type shown struct {
	operation
	Method, Path string
	Parameters   []parameter
	Open         bool // without a key
}

// render returns the page, and the source of its style for a Content-Security-Policy.
func render(root *yaml.Node) (html []byte, style string, err error) {
	p := page{Style: template.CSS(pageStyle)}
	if err := root.Decode(&p.spec); err != nil {
		return nil, "", err
	}
	p.Rooms = p.spec.rooms()
	made, err := template.New("page").Funcs(p.spec.functions()).Parse(pageTemplate)
	if err != nil {
		return nil, "", err
	}
	var text bytes.Buffer
	if err := made.Execute(&text, &p); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256([]byte(pageStyle))
	return text.Bytes(), "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'", nil
}

func (s *spec) rooms() (rooms []room) {
	for _, tag := range s.Tags {
		r := room{Name: tag.Name, Description: tag.Description}
		for _, p := range s.Paths {
			r.Operations = append(r.Operations, p.Value.of(tag.Name, p.Name)...)
		}
		rooms = append(rooms, r)
	}
	return rooms
}

// of returns the operations of a path that have a tag.
func (p *path) of(tag, at string) (found []shown) {
	methods := []string{"GET", "PUT", "POST", "PATCH", "DELETE"}
	for i, op := range []*operation{p.Get, p.Put, p.Post, p.Patch, p.Delete} {
		if op == nil || op.Tags[0] != tag {
			continue
		}
		found = append(found, shown{
			operation: *op, Method: methods[i], Path: at,
			Parameters: append(p.Parameters[:len(p.Parameters):len(p.Parameters)], op.Parameters...),
			Open:       op.Security != nil,
		})
	}
	return found
}

// functions returns the functions of the template, which resolve references and format values.
func (s *spec) functions() template.FuncMap {
	return template.FuncMap{
		"parameter": func(p parameter) parameter { return resolved(p, p.Ref, s.Components.Parameters) },
		"header":    func(h header) header { return resolved(h, h.Ref, s.Components.Headers) },
		"response":  func(r response) response { return resolved(r, r.Ref, s.Components.Responses) },
		"body":      func(b *body) body { return resolved(*b, b.Ref, s.Components.RequestBodies) },
		"name":      name,
		"text":      formatted,
		"json":      example,
		"words":     func(words []string) string { return strings.Join(words, " or ") },
	}
}

// resolved returns the component that a reference names, the value itself without a reference.
func resolved[T any](value T, reference string, components map[string]T) T {
	if reference == "" {
		return value
	}
	return components[name(reference)]
}

// formatted writes a description: paragraphs, and code between backquotes.
func formatted(text string) template.HTML {
	var html strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		html.WriteString("<p>")
		for i, part := range strings.Split(paragraph, "`") {
			part = template.HTMLEscapeString(part)
			if i%2 == 1 {
				part = "<code>" + part + "</code>"
			}
			html.WriteString(part)
		}
		html.WriteString("</p>")
	}
	return template.HTML(html.String())
}

// example writes a value as JSON, "" for none.
func example(n yaml.Node) (string, error) {
	if n.IsZero() {
		return "", nil
	}
	text, err := indented(&n)
	return string(text), err
}
