package openapi

import (
	_ "embed"
	"html/template"
	"iter"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed page.html
var pageTemplate string

// render makes the list of the operations and the description of each.
func (d *Document) render(root *yaml.Node) error {
	document := root.Content[0]
	made, err := template.New("page").Funcs(template.FuncMap{
		"get":        get,
		"value":      value,
		"list":       list,
		"members":    members,
		"operations": operations,
		"component":  func(n *yaml.Node) *yaml.Node { return component(document, n) },
		"name":       name,
		"anchor":     func(tag string) string { return strings.ReplaceAll(strings.ToLower(tag), " ", "-") },
		"text":       formatted,
		"json":       func(n *yaml.Node) (string, error) { text, err := indented(n); return string(text), err },
		"span":       span,
		"needs":      needs,
	}).Parse(pageTemplate)
	if err != nil {
		return err
	}
	for name, to := range map[string]*template.HTML{"contents": &d.Contents, "body": &d.Body} {
		var text strings.Builder
		if err := made.ExecuteTemplate(&text, name, document); err != nil {
			return err
		}
		*to = template.HTML(text.String())
	}
	return nil
}

// get returns a member of a mapping, nil without it.
func get(n *yaml.Node, key string) *yaml.Node {
	i := keyOf(n, key)
	switch {
	case i < 0:
		return nil
	case n.Content[i+1].Kind == yaml.AliasNode:
		return n.Content[i+1].Alias
	}
	return n.Content[i+1]
}

// value returns the text of a member of a mapping, "" without it.
func value(n *yaml.Node, key string) string {
	if member := get(n, key); member != nil {
		return member.Value
	}
	return ""
}

// list returns the elements of a sequence that is a member of a mapping.
func list(n *yaml.Node, key string) []*yaml.Node {
	if member := get(n, key); member != nil {
		return member.Content
	}
	return nil
}

// members yields the members of a mapping in the order of the document.
func members(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		for pair := range slices.Chunk(n.Content, 2) {
			if !yield(pair[0].Value, pair[1]) {
				return
			}
		}
	}
}

// operation is an operation with the members of its path.
type operation struct {
	*yaml.Node
	Method, Path string
	Parameters   []*yaml.Node
}

// operations returns the operations that have a tag.
func operations(paths *yaml.Node, tag string) (found []operation) {
	for path, item := range members(paths) {
		for _, method := range []string{"get", "put", "post", "patch", "delete"} {
			n := get(item, method)
			if n == nil || list(n, "tags")[0].Value != tag {
				continue
			}
			parameters := slices.Concat(list(item, "parameters"), list(n, "parameters"))
			found = append(found, operation{n, strings.ToUpper(method), path, parameters})
		}
	}
	return found
}

// needs says what an operation takes: "key: sessions:read; token: read", or that it needs no key.
func needs(operation *yaml.Node) string {
	var ways []string
	for _, way := range list(operation, "security") {
		for kind, scopes := range members(way) {
			text := kind
			for i, scope := range scopes.Content {
				text += []string{": ", ", "}[min(i, 1)] + scope.Value
			}
			ways = append(ways, text)
		}
	}
	if len(ways) == 0 {
		return "without a key"
	}
	return strings.Join(ways, "; ")
}

// component returns the component that a reference names, or the value itself if it is no reference.
func component(document, n *yaml.Node) *yaml.Node {
	reference, ok := strings.CutPrefix(value(n, "$ref"), "#/")
	if !ok {
		return n
	}
	for step := range strings.SplitSeq(reference, "/") {
		document = get(document, step)
	}
	return document
}

// name returns the last step of a reference.
func name(reference string) string { return reference[strings.LastIndexByte(reference, '/')+1:] }

// formatted writes a description: paragraphs, lists whose lines begin with a star, and code between backquotes.
func formatted(text string) template.HTML {
	var html strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if items, ok := strings.CutPrefix(paragraph, "* "); ok {
			html.WriteString("<ul>")
			for item := range strings.SplitSeq(items, "\n* ") {
				html.WriteString("<li>" + spans(item))
			}
			html.WriteString("</ul>")
			continue
		}
		html.WriteString("<p>" + spans(paragraph) + "</p>")
	}
	return template.HTML(html.String())
}

// otherPage is how a description names a page of docs.
var otherPage = regexp.MustCompile(`^docs/([a-z-]+)\.md(#[a-z-]+)?$`)

// spans writes text with code between backquotes, and links to the pages that it names.
func spans(text string) string {
	var html strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		switch {
		case i%2 == 1 && otherPage.MatchString(part):
			part = otherPage.ReplaceAllString(part, `<a href="$1.html$2">$1</a>`)
		case i%2 == 1:
			part = "<code>" + part + "</code>"
		}
		html.WriteString(part)
	}
	return html.String()
}

// span describes the values between two limits of a schema, each of which may be absent.
func span(schema *yaml.Node, minimum, maximum string) string {
	low, high := value(schema, minimum), value(schema, maximum)
	switch {
	case low != "" && high != "":
		return low + " to " + high
	case high != "":
		return "at most " + high
	case low != "":
		return "at least " + low
	}
	return ""
}
