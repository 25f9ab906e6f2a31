// Package openapi is the description of the HTTP API: openapi.yaml, which has that of the core, with the parts of the
// features, and what is served of it.
//
// Start at openapi.yaml. Load puts the schema of a policy, which package compact writes, into it; page.go and page.html
// make a page of it for the site of the documentation. The package owns no tables and imports nothing of ours but
// rawjson.
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/varve-dev/varve/internal/rawjson"
)

//go:embed openapi.yaml
var source []byte

// Document is the description in every served form.
type Document struct {
	YAML, JSON     []byte
	Contents, Body template.HTML // a page: links to its parts, and the parts
}

// Part is the part of the description that a feature has.
type Part struct {
	Source []byte   // YAML: tags, paths and components
	Codes  []string // of its errors
}

// Load makes all forms of the description of the core and some features. policy is the JSON Schema of a policy.
func Load(policy []byte, parts ...Part) (*Document, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	for _, p := range parts {
		var n yaml.Node
		if err := yaml.Unmarshal(p.Source, &n); err != nil {
			return nil, fmt.Errorf("the description of a feature: %w", err)
		}
		if len(n.Content) > 0 {
			merge(root.Content[0], n.Content[0])
		}
		codes := follow(root.Content[0], "components", "schemas", "Problem", "properties", "code", "enum")
		for _, code := range p.Codes {
			codes.Content = append(codes.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: code})
		}
	}
	schema, err := part(policy)
	if err != nil {
		return nil, fmt.Errorf("schema of a policy: %w", err)
	}
	embed(&root, policySource, schema)
	d := &Document{}
	if d.JSON, err = indented(&root); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	d.YAML = text.Bytes()
	return d, d.render(&root)
}

// merge adds what a part has to the whole: elements to lists, members to mappings.
func merge(whole, part *yaml.Node) {
	if whole.Kind != yaml.MappingNode {
		whole.Content = append(whole.Content, part.Content...)
		return
	}
	for i := 0; i < len(part.Content); i += 2 {
		if inside := keyOf(whole, part.Content[i].Value); inside >= 0 {
			merge(whole.Content[inside+1], part.Content[i+1])
			continue
		}
		whole.Content = append(whole.Content, part.Content[i], part.Content[i+1])
	}
}

// follow returns what is below a mapping by the names of members.
func follow(n *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		n = n.Content[keyOf(n, name)+1]
	}
	return n
}

// policySource is how openapi.yaml refers to the schema of a policy: editors find it there, those who ask the API do
// not.
const policySource = "../../../docs/policy.schema.json"

// part returns a schema as a part of a document: JSON is YAML, and only a whole document names its dialect.
func part(schema []byte) (*yaml.Node, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(schema, &n); err != nil {
		return nil, err
	}
	root := n.Content[0]
	if i := keyOf(root, "$schema"); i >= 0 {
		root.Content = slices.Delete(root.Content, i, i+2)
	}
	return root, nil
}

// embed replaces the references to a schema by the schema.
func embed(n *yaml.Node, reference string, schema *yaml.Node) {
	if i := keyOf(n, "$ref"); i >= 0 && n.Content[i+1].Value == reference {
		*n = *schema
		return
	}
	for _, child := range n.Content {
		embed(child, reference, schema)
	}
}

// keyOf returns the index of a key of a mapping, -1 without it. The value comes after it.
func keyOf(n *yaml.Node, key string) int {
	if n == nil || n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

func indented(n *yaml.Node) ([]byte, error) {
	var text bytes.Buffer
	if err := json.Indent(&text, appendJSON(nil, n), "", "  "); err != nil {
		return nil, fmt.Errorf("openapi.yaml at line %d is not JSON: %w", n.Line, err)
	}
	return text.Bytes(), nil
}

// appendJSON writes a node as JSON, members in the order that they have in the document.
func appendJSON(dst []byte, n *yaml.Node) []byte {
	switch n.Kind {
	case yaml.DocumentNode:
		return appendJSON(dst, n.Content[0])
	case yaml.AliasNode:
		return appendJSON(dst, n.Alias)
	case yaml.MappingNode:
		return appendMembers(dst, n)
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, element := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, element)
		}
		return append(dst, ']')
	}
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!null":
		return append(dst, n.Value...)
	}
	return rawjson.Quote(dst, []byte(n.Value))
}

func appendMembers(dst []byte, n *yaml.Node) []byte {
	dst = append(dst, '{')
	for i := 0; i < len(n.Content); i += 2 {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.Quote(dst, []byte(n.Content[i].Value)), ':')
		dst = appendJSON(dst, n.Content[i+1])
	}
	return append(dst, '}')
}
