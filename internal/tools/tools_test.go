package tools_test

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tools"
	"github.com/varve-dev/varve/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files")

func everything(session.Scope) bool { return true }

// TestTheDefinitionsOfEveryProvider compares what each gets with testdata, and holds it to the provider's rules.
func TestTheDefinitionsOfEveryProvider(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		got, err := json.MarshalIndent(tools.Offer(f, tools.All(everything)), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + string(f) + ".json"
		if *update {
			if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
			t.Errorf("%s (-golden +got):\n%s", f, diff)
		}
		for _, problem := range violations(f, got) {
			t.Errorf("%s: %s", f, problem)
		}
	}
}

// rules are the schemas of the providers' documents, for the members that the tools have.
var rules = map[session.Format]string{
	session.Anthropic: `{"type":"array","items":{"type":"object","required":["name","input_schema"],"additionalProperties":false,"properties":{
		"name":{"type":"string","pattern":"^[a-zA-Z0-9_-]{1,128}$"},"description":{"type":"string"},"input_schema":{"$ref":"#/$defs/object"}}}}`,
	session.OpenAIChat: `{"type":"array","items":{"type":"object","required":["type","function"],"additionalProperties":false,"properties":{
		"type":{"const":"function"},"function":{"type":"object","required":["name"],"additionalProperties":false,"properties":{
		"name":{"type":"string","pattern":"^[a-zA-Z0-9_-]{1,64}$"},"description":{"type":"string","maxLength":1024},"strict":{"type":"boolean"},"parameters":{"$ref":"#/$defs/object"}}}}}}`,
	session.OpenAIResponses: `{"type":"array","items":{"type":"object","required":["type","name","parameters","strict"],"additionalProperties":false,"properties":{
		"type":{"const":"function"},"name":{"type":"string","pattern":"^[a-zA-Z0-9_-]{1,64}$"},"description":{"type":"string","maxLength":1024},"strict":{"type":"boolean"},"parameters":{"$ref":"#/$defs/object"}}}}`,
	session.Gemini: `{"type":"array","items":{"type":"object","required":["functionDeclarations"],"additionalProperties":false,"properties":{
		"functionDeclarations":{"type":"array","items":{"type":"object","required":["name","description"],"additionalProperties":false,"properties":{
		"name":{"type":"string","pattern":"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$"},"description":{"type":"string"},"parameters":{"$ref":"#/$defs/gemini"}}}}}}}`,
	session.AISDK: `{"type":"array","items":{"type":"object","required":["type","name","inputSchema"],"additionalProperties":false,"properties":{
		"type":{"const":"function"},"name":{"type":"string"},"description":{"type":"string"},"inputSchema":{"$ref":"#/$defs/object"}}}}`,
}

const shared = `"$defs":{"object":{"type":"object","required":["type","properties","additionalProperties"],"additionalProperties":false,"properties":{
		"type":{"const":"object"},"additionalProperties":{"const":false},"required":{"type":"array","items":{"type":"string"}},"properties":{"type":"object",
		"additionalProperties":{"type":"object","required":["type","description"],"additionalProperties":false,"properties":{"type":{"enum":["string","integer","boolean"]},
		"description":{"type":"string"},"minimum":{"type":"integer"},"maximum":{"type":"integer"}}}}}},
	"gemini":{"type":"object","required":["type","properties"],"additionalProperties":false,"properties":{
		"type":{"const":"OBJECT"},"required":{"type":"array","items":{"type":"string"}},"properties":{"type":"object",
		"additionalProperties":{"type":"object","required":["type","description"],"additionalProperties":false,"properties":{"type":{"enum":["STRING","INTEGER","BOOLEAN"]},
		"description":{"type":"string"},"minimum":{"type":"integer"},"maximum":{"type":"integer"}}}}}}}`

func violations(f session.Format, offered []byte) []string {
	rule, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.TrimSuffix(rules[f], "}") + "," + shared + "}"))
	if err != nil {
		return []string{err.Error()}
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("rule.json", rule); err != nil {
		return []string{err.Error()}
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(offered)))
	if err != nil {
		return []string{err.Error()}
	}
	if err := compiler.MustCompile("rule.json").Validate(value); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// TestTheRulesOfProvidersRefuse holds the check itself to what a provider refuses.
func TestTheRulesOfProvidersRefuse(t *testing.T) {
	t.Parallel()
	good, _ := json.Marshal(tools.Offer(session.Gemini, tools.All(everything)))
	for old, bad := range map[string]string{`"OBJECT"`: `"object"`, `"STRING"`: `"string"`, `"read_result"`: `"read result"`} {
		if len(violations(session.Gemini, []byte(strings.ReplaceAll(string(good), old, bad)))) == 0 {
			t.Errorf("%s instead of %s is valid", bad, old)
		}
	}
}

// TestEveryExampleIsRight: a right call is what refusals show, so it must be one.
func TestEveryExampleIsRight(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`\{"[^}]*\}`)
	for _, d := range tools.All(everything) {
		schema, _ := json.Marshal(d.InputSchema())
		decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(d.Name, decoded); err != nil {
			t.Fatal(err)
		}
		for _, example := range append(named.FindAllString(d.Description, -1), d.Example) {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(example))
			if err == nil {
				err = compiler.MustCompile(d.Name).Validate(value)
			}
			if err != nil {
				t.Errorf("%s %s: %v", d.Name, example, err)
			}
		}
	}
}

// TestTheLimitsAreThoseOfReading: what a definition promises, a call keeps.
func TestTheLimitsAreThoseOfReading(t *testing.T) {
	t.Parallel()
	want := map[string]int64{
		"read_result limit": readback.MaxLines, "read_result max_bytes": readback.MaxAgentBytes, "read_result chars": readback.MaxBytes,
		"grep_results before": readback.MaxContext, "grep_results after": readback.MaxContext, "grep_results max_matches": readback.MaxMatches,
		"search_session limit": readback.MaxHits,
	}
	for _, d := range tools.All(everything) {
		for i := range d.Arguments {
			a := &d.Arguments[i]
			if limit, ok := want[d.Name+" "+a.Name]; ok && a.Max != limit {
				t.Errorf("%s %s: at most %d, not %d", d.Name, a.Name, a.Max, limit)
			}
			delete(want, d.Name+" "+a.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no argument has the limits %v", want)
	}
}

// TestViewsNameOnlyToolsThatThereAre in the wording of every profile.
func TestViewsNameOnlyToolsThatThereAre(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`[a-z]+_[a-z_]+`)
	names := append(tools.Names(tools.All(everything)), "tool_compaction", "call_id", "cut_tokens")
	for _, profile := range policy.Profiles() {
		p, err := policy.Profile(profile)
		if err != nil {
			t.Fatal(err)
		}
		document := string(p.Document())
		wording := document[strings.Index(document, `"wording"`):]
		for _, text := range regexp.MustCompile(`:"((?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(wording, -1) {
			for _, found := range word.FindAllString(text[1], -1) {
				if !slices.Contains(names, found) {
					t.Errorf("%q names %s", text[1], found)
				}
			}
		}
	}
}

// TestAnAnswerIsReadyToBeAppended: every format's own reader accepts it, as the result of the call.
func TestAnAnswerIsReadyToBeAppended(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		for name, answer := range map[string]*tools.Answer{
			"text":  {Text: "what was read"},
			"image": {Text: "what was read", Images: []tools.Image{{MediaType: "image/png", Data: []byte("png")}}},
			"error": {Text: "what was read", IsError: true},
		} {
			messages := answer.Messages(f, tools.ReadResult, "call_1", []byte(`{"ref":"r1.0-0000"}`))
			if f == session.AISDK { // a part, which belongs into a message
				if !json.Valid(messages[0]) || !strings.Contains(string(messages[0]), `"toolCallId":"call_1"`) {
					t.Errorf("%s, %s: %s", f, name, messages[0])
				}
				messages[0] = json.RawMessage(`{"id":"m","role":"assistant","parts":[` + string(messages[0]) + `]}`)
			}
			facts, err := wire.Accept(f, messages[0])
			if err != nil {
				t.Errorf("%s, %s: %v: %s", f, name, err, messages[0])
				continue
			}
			i := slices.IndexFunc(facts.Parts, func(p wire.Part) bool { return p.Kind == wire.Result })
			if i < 0 || facts.Parts[i].CallID != "call_1" && f != session.Gemini || !strings.Contains(string(messages[0]), "what was read") {
				t.Errorf("%s, %s: %+v: %s", f, name, facts.Parts, messages[0])
			}
		}
	}
}
