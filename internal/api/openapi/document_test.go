package openapi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/varve-dev/varve/internal/api/openapi"
)

// load returns the document in all its forms, and its decoded JSON.
func load(t *testing.T) (*openapi.Document, map[string]any) {
	t.Helper()
	policy, err := os.ReadFile("../../../docs/policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	d, err := openapi.Load(policy)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(d.JSON, &root); err != nil {
		t.Fatal(err)
	}
	return d, root
}

// each calls visit with every object below a value, and the pointer to it.
func each(at string, value any, visit func(at string, object map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(at, value)
		for name, member := range value {
			each(at+"/"+name, member, visit)
		}
	case []any:
		for _, element := range value {
			each(at+"/-", element, visit)
		}
	}
}

func TestBothFormsOfTheDocumentSayTheSame(t *testing.T) {
	t.Parallel()
	d, fromJSON := load(t)
	var decoded any
	if err := yaml.Unmarshal(d.YAML, &decoded); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	var fromYAML map[string]any
	if err := json.Unmarshal(text, &fromYAML); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Error(diff)
	}
	if fromJSON["openapi"] != "3.1.1" {
		t.Errorf("openapi: %v", fromJSON["openapi"])
	}
}

func TestEveryReferenceLeadsToSomethingInTheDocument(t *testing.T) {
	t.Parallel()
	_, root := load(t)
	used := map[string]bool{}
	each("", root, func(at string, object map[string]any) {
		reference, ok := object["$ref"].(string)
		if !ok {
			return
		}
		used[reference] = true
		value := any(root)
		for step := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
			members, _ := value.(map[string]any)
			value = members[step]
		}
		if value == nil || !strings.HasPrefix(reference, "#/") {
			t.Errorf("%s: $ref %q leads nowhere", at, reference)
		}
	})
	features, err := filepath.Glob("../../*/openapi.yaml") // whose parts refer to components of the core, too
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range features {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`#/components/\w+/\w+`).FindAllString(string(text), -1) {
			used[m] = true
		}
	}
	for kind, components := range root["components"].(map[string]any) {
		for name := range components.(map[string]any) {
			if kind != "securitySchemes" && !used["#/components/"+kind+"/"+name] {
				t.Errorf("nothing refers to %s %s", kind, name)
			}
		}
	}
}

// keywords are those of JSON Schema that the document's schemas have. A comma in a description that is not quoted would
// make another one of the rest of it.
var keywords = strings.Fields(`$ref type description title enum const default format pattern minimum maximum minLength maxLength minItems maxItems
	minProperties maxProperties items properties required propertyNames additionalProperties unevaluatedProperties allOf anyOf oneOf`)

// schemas calls visit with every schema that stands somewhere in a value, and the pointer to it.
func schemas(root map[string]any, visit func(at string, schema map[string]any)) {
	var descend func(at string, value any)
	descend = func(at string, value any) {
		schema, ok := value.(map[string]any)
		if !ok {
			return
		}
		visit(at, schema)
		for _, name := range []string{"items", "propertyNames", "additionalProperties"} {
			descend(at+"/"+name, schema[name])
		}
		for _, name := range []string{"allOf", "anyOf", "oneOf"} {
			list, _ := schema[name].([]any)
			for _, element := range list {
				descend(at+"/"+name, element)
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			descend(at+"/properties/"+name, property)
		}
	}
	for name, schema := range root["components"].(map[string]any)["schemas"].(map[string]any) {
		descend("/components/schemas/"+name, schema)
	}
	each("", root, func(at string, object map[string]any) {
		if !strings.Contains(at, "/schemas/") {
			descend(at+"/schema", object["schema"])
		}
	})
}

func TestSchemasAreMadeOfKeywords(t *testing.T) {
	t.Parallel()
	_, root := load(t)
	seen := 0
	schemas(root, func(at string, schema map[string]any) {
		seen++
		for name := range schema {
			if !slices.Contains(keywords, name) {
				t.Errorf("%s has %q", at, name)
			}
		}
	})
	if seen < 500 {
		t.Errorf("only %d schemas were found", seen)
	}
}

// open are the schemas of objects that say nothing of other members: the bases of others, and a policy's own.
var open = regexp.MustCompile(`/(List|[A-Za-z]+Members)$|/allOf$|^/components/schemas/Policy`)

func TestObjectsHaveNoMembersThatAreNotDescribed(t *testing.T) {
	t.Parallel()
	_, root := load(t)
	schemas(root, func(at string, schema map[string]any) {
		_, additional := schema["additionalProperties"]
		_, unevaluated := schema["unevaluatedProperties"]
		if schema["properties"] != nil && !additional && !unevaluated && !open.MatchString(at) {
			t.Errorf("%s may have any other member", at)
		}
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := properties[name.(string)]; !ok && schema["properties"] != nil {
				t.Errorf("%s requires %s, which it does not describe", at, name)
			}
		}
	})
}

func TestThePageShowsEverythingAndLoadsNothing(t *testing.T) {
	t.Parallel()
	d, root := load(t)
	page := string(d.Contents + d.Body)
	each("/paths", root["paths"], func(at string, object map[string]any) {
		if id, ok := object["operationId"].(string); ok && (strings.Count(page, `id="`+id+`"`) != 1 || !strings.Contains(page, `href="#`+id+`"`)) {
			t.Errorf("the page does not show %s", at)
		}
	})
	for name := range root["components"].(map[string]any)["schemas"].(map[string]any) {
		if strings.Count(page, `id="schema-`+name+`"`) != 1 {
			t.Errorf("the page does not show the schema %s", name)
		}
	}
	for _, link := range regexp.MustCompile(`(?:src|href|action)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		target, inside := strings.CutPrefix(link[1], "#")
		other := strings.HasPrefix(target, "openapi.") || regexp.MustCompile(`^[a-z-]+\.html(#[a-z-]+)?$`).MatchString(target)
		if inside && !strings.Contains(page, `id="`+target+`"`) || !inside && !other {
			t.Errorf("a link leads to %s", link[1])
		}
	}
	for _, wrong := range []string{"<script", " style=", " on", "url(", "@import", "ZgotmplZ", "<no value>"} {
		if strings.Contains(regexp.MustCompile(`>[^<]*<`).ReplaceAllString(page, "><"), wrong) {
			t.Errorf("the page has %q", wrong)
		}
	}
}

func TestASchemaOfAPolicyThatIsNoneIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := openapi.Load([]byte("{")); err == nil {
		t.Error("it was loaded")
	}
}
