package policy

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
)

// Explained is a field of a profile with what the document of its system says of it, in our words.
type Explained struct {
	Field   string          `json:"field"`
	Value   json.RawMessage `json:"value"`
	Section string          `json:"section"` // of the document; "" where it has nothing
	Says    string          `json:"says"`
	Classes []string        `json:"classes"` // of docs/compatibility.md, in which Varve differs
}

// source is what a document says of all fields below some pointers.
type source struct {
	Fields  []string `json:"fields"`
	Section string   `json:"section"`
	Says    string   `json:"says"`
	Classes []string `json:"classes"`
}

//go:embed sources.json
var sourcesText []byte

// sources are the documents of the systems by profile. "*" has what no document has.
var sources = readSources()

func readSources() (all map[string]struct {
	Document string   `json:"document"`
	Lines    []source `json:"lines"`
}) {
	decoder := json.NewDecoder(bytes.NewReader(sourcesText))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		panic(err) // the file is embedded
	}
	return all
}

// Explain returns the document that a profile follows, and each field with what it says of it. The default has none.
func Explain(profile string) (document string, list []Explained) {
	of, ok := sources[profile]
	if !ok || profile == "*" {
		return "", []Explained{}
	}
	for pointer, leaf := range eachField(reflect.ValueOf(profileOrDefault(profile)), "") {
		line := nearest(of.Lines, pointer)
		if line == nil {
			line = nearest(sources["*"].Lines, pointer)
		}
		if line == nil {
			continue
		}
		value, err := json.Marshal(leaf.Interface())
		if err != nil {
			panic(err) // a policy is JSON
		}
		name := strings.ReplaceAll(pointer[1:], "/", ".")
		list = append(list, Explained{name, value, line.Section, line.Says, append([]string{}, line.Classes...)})
	}
	return of.Document, list
}

// nearest returns the line whose field is pointer, or is next above it; nil if there is none.
func nearest(lines []source, pointer string) (found *source) {
	length := 0
	for i := range lines {
		for _, field := range lines[i].Fields {
			if len(field) > length && (pointer == field || strings.HasPrefix(pointer, field+"/")) {
				found, length = &lines[i], len(field)
			}
		}
	}
	return found
}
