package peers

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// Generator makes messages from a published schema: every type of block, every optional member, and values that are
// allowed but rarely sent.
type Generator struct {
	random      *rand.Rand
	root        map[string]any
	definitions map[string]any
	stricter    *jsonschema.Resolved // a schema that a message must keep, too; nil for none
}

// stricter are the formats whose messages two documents describe.
var stricter = map[string]string{"openai-chat": "openapi-chat", "openai-responses": "openapi-responses"}

// NewGenerator returns a Generator of the messages of a format.
func NewGenerator(t testing.TB, format string, random *rand.Rand) *Generator {
	t.Helper()
	g := &Generator{random: random}
	if err := json.Unmarshal(Schema(t, format), &g.root); err != nil {
		t.Fatal(err)
	}
	g.definitions, _ = g.root["$defs"].(map[string]any)
	if name := stricter[format]; name != "" {
		g.stricter = Resolved(t, name)
	}
	return g
}

// Resolved returns a published schema that validates.
func Resolved(t testing.TB, name string) *jsonschema.Resolved {
	t.Helper()
	schema := &jsonschema.Schema{}
	if err := json.Unmarshal(Schema(t, name), schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// Message returns a message as JSON, which all that describes its format allows.
func (g *Generator) Message(t testing.TB) []byte {
	t.Helper()
	for {
		body, err := json.Marshal(g.value(g.root, "", 0))
		if err != nil {
			t.Fatal(err)
		}
		if g.stricter == nil || g.keeps(t, body) {
			return body
		}
	}
}

func (g *Generator) keeps(t testing.TB, body []byte) bool {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	return g.stricter.Validate(value) == nil
}

// maxDepth is where optional members end: some types hold themselves.
const maxDepth = 9

// value returns a value that a schema allows. name is the member that it is for.
func (g *Generator) value(schema map[string]any, name string, depth int) any {
	for schema["$ref"] != nil {
		ref, _ := schema["$ref"].(string)
		schema, _ = g.definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	if constant, ok := schema["const"]; ok {
		return constant
	}
	if list, ok := schema["enum"].([]any); ok {
		return pick(g.random, list)
	}
	if list, ok := schema["anyOf"].([]any); ok {
		list = slices.DeleteFunc(slices.Clone(list), isNothing)
		chosen, _ := pick(g.random, list).(map[string]any)
		return g.value(chosen, name, depth)
	}
	switch oneOfTypes(g.random, schema["type"]) {
	case "string":
		return g.text(name)
	case "number", "integer":
		return pick(g.random, []any{0, 1, 7, 1_000_000})
	case "boolean":
		return g.random.IntN(2) == 0
	case "null":
		return nil
	case "array":
		return g.array(schema, name, depth)
	case "object":
		return g.object(schema, depth)
	}
	return pick(g.random, anything)
}

// anything are values where a schema allows all. Two of three are objects, which arguments mostly are.
var anything = []any{
	map[string]any{}, map[string]any{"path": "a.go", "n": 1},
	map[string]any{"": nil, "deep": []any{map[string]any{"x": ""}}},
	map[string]any{"type": "text", "text": "t"}, "", "x", []any{}, nil,
}

func oneOfTypes(random *rand.Rand, declared any) string {
	if list, ok := declared.([]any); ok {
		declared = pick(random, list)
	}
	name, _ := declared.(string)
	return name
}

func (g *Generator) array(schema map[string]any, name string, depth int) any {
	n := pick(g.random, []int{0, 1, 1, 1, 2, 3})
	if min, ok := schema["minItems"].(float64); ok {
		n = max(n, int(min))
	}
	items, _ := schema["items"].(map[string]any)
	list := make([]any, 0, n)
	for range n {
		list = append(list, g.value(items, name, depth+1))
	}
	return list
}

func (g *Generator) object(schema map[string]any, depth int) any {
	members, _ := schema["properties"].(map[string]any)
	if members == nil {
		return g.dictionary(schema, depth)
	}
	required, _ := schema["required"].([]any)
	made := map[string]any{}
	all := g.random.IntN(6) == 0 // an object with all of its optional members
	for _, key := range slices.Sorted(maps.Keys(members)) {
		member, _ := members[key].(map[string]any)
		if slices.Contains(required, any(key)) || depth < maxDepth && (all || g.random.IntN(3) == 0) {
			made[key] = g.value(member, key, depth+1)
		}
	}
	return made
}

// isNothing reports whether a schema allows no value.
func isNothing(schema any) bool {
	s, _ := schema.(map[string]any)
	return s["not"] != nil
}

// dictionary returns an object whose members have names of their own.
func (g *Generator) dictionary(schema map[string]any, depth int) any {
	values, ok := schema["additionalProperties"].(map[string]any)
	if !ok || len(values) == 0 {
		return pick(g.random, anything[:4])
	}
	made := map[string]any{}
	for _, key := range []string{"google", "openai", "anthropic", ""} {
		if depth < maxDepth && g.random.IntN(3) == 0 {
			made[key] = g.value(values, key, depth+1)
		}
	}
	return made
}

var longID, longName = strings.Repeat("i", 70), strings.Repeat("n", 140)

// texts are strings for the members of these names; "" is for all others. Ids are few, so that results meet calls.
var texts = map[string][]string{
	"":             {"", " ", "x", "Say it.", "so \n", "ü\u2028\x00<|end|>", strings.Repeat("long ", 60)},
	"id":           {"a", "b", "toolu_1", "call_1", "msg_1", "fc_1", "rs_1", "a.b:c d", longID, ""},
	"name":         {"read", "read", "write_file", "mcp__server/tool", "my tool", "読む", "9lives", longName, ""},
	"arguments":    {"{}", `{"path":"a.go"}`, "", "[1]", `"x"`, "not json", "null"},
	"data":         {"aGVsbG8=", "iVBORw0KGgo=", ""},
	"url":          {"https://example.com/a.png", "data:image/png;base64,iVBORw0KGgo="},
	"media_type":   {"image/png", "image/bmp", "application/pdf", "text/plain", "audio/wav", ""},
	"signature":    {"c2ln", ""},
	"encrypted":    {"ZQ==", ""},
	"filename":     {"a.pdf", "a b.txt", ""},
	"type":         {"tool-f", "data-x", "hologram"},
	"role":         {"user", "model", "user", "model", "system", ""},
	"display_name": {"a", ""},
}

// spelled are the names under which other members have the same kinds of texts.
var spelled = map[string]string{
	"call_id": "id", "tool_use_id": "id", "tool_call_id": "id", "toolCallId": "id", "file_id": "id",
	"toolName": "name", "tool_name": "name", "server_label": "name",
	"image_url": "url", "file_url": "url", "fileUri": "url",
	"file_data": "data", "bytes": "data", "mimeType": "media_type", "mediaType": "media_type",
	"thoughtSignature": "signature", "encrypted_content": "encrypted", "partial_json": "arguments",
}

func (g *Generator) text(name string) string {
	if other := spelled[name]; other != "" {
		name = other
	}
	list := texts[name]
	if list == nil {
		list = texts[""]
	}
	return pick(g.random, list)
}

func pick[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }
