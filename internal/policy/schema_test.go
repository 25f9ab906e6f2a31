package policy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestEveryFieldOfAPolicyIsDescribed(t *testing.T) {
	t.Parallel()
	described := map[string]bool{}
	for pointer, value := range eachField(reflect.ValueOf(Default()), "") {
		described[pointer] = true
		f, ok := fields[pointer]
		number := value.Kind() == reflect.Int || value.Kind() == reflect.Float64
		if !ok || f.Does == "" || number != (f.High > 0) {
			t.Errorf("%s: %+v", pointer, f)
		}
	}
	for pointer := range fields {
		if !described[pointer] {
			t.Errorf("%s is described, but no policy has it", pointer)
		}
	}
}

func policySchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryProfileFitsTheSchema(t *testing.T) {
	t.Parallel()
	s := policySchema(t)
	for _, name := range Profiles() {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(profileOrDefault(name).Document()))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	t.Parallel()
	s := policySchema(t)
	for text, valid := range map[string]bool{
		`{}`: true, `{"cap":null,"target":null}`: true, `{"cap":{"max_lines":0}}`: true, `{"tools":{"operations":{"a":null}}}`: true,
		`{"dedupe":{"fields":{"a":["b"]}}}`: true, `{"profile":null}`: true, `{"summarise":{"prompt":""}}`: true,
		`{"taget":0.3}`: false, `{"target":0}`: false, `{"cap":{"max_lines":-1}}`: false, `{"cap":{"max_lines":1}}`: true, `{"cap":{"max_tokens":1.5}}`: false,
		`{"profile":"x"}`: false, `{"tools":{"operations":{"a":"b"}}}`: false, `{"dedupe":{"fields":{"a":[""]}}}`: false,
		`{"protect":{"tools":["` + strings.Repeat("x", 129) + `"]}}`: false, `{"wording":{"clear":""}}`: false, `{"trim":{"categories":{"":"ephemeral"}}}`: false,
	} {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(document); (err == nil) != valid {
			t.Errorf("the schema says of %s: %v", text, err)
		}
		if _, err := Parse([]byte(text)); (err == nil) != valid {
			t.Errorf("the parser says of %s: %v", text, err)
		}
	}
}

var update = flag.Bool("update", false, "write docs/policy.md and docs/policy.schema.json anew")

const (
	schemaFile = "../../docs/policy.schema.json"
	policyPage = "../../docs/policy.md"
)

func TestTheSchemaIsPublished(t *testing.T) {
	t.Parallel()
	compareFile(t, schemaFile, string(Schema()))
}

// TestThePageListsEveryField holds the tables of docs/policy.md to the types and the profiles.
func TestThePageListsEveryField(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(policyPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for mark, table := range map[string]string{"fields": fieldTable(), "profiles": profileTable(), "wording": wordingTable()} {
		begin, end := "<!-- "+mark+": go test ./internal/policy -run Page -update -->\n", "<!-- end of "+mark+" -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("the page has no place for %s", mark)
		}
		text = before + begin + "\n" + table + "\n" + end + after
	}
	compareFile(t, policyPage, text)
}

func compareFile(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", file, diff)
	}
}

func fieldTable() string {
	var rows strings.Builder
	rows.WriteString("|field|default|values|what it does|\n|---|---|---|---|\n")
	for pointer, value := range eachField(reflect.ValueOf(Default()), "") {
		if strings.HasPrefix(pointer, "/wording/") {
			continue
		}
		preset := shown(value)
		if pointer == model {
			preset = "none"
		}
		fmt.Fprintf(&rows, "|`%s`|%s|%s|%s|\n", dotted(pointer), preset, possible(pointer, value.Type()), fields[pointer].Does)
	}
	return rows.String()
}

// profileTable has the fields in which profiles differ; what a profile shares with the default is left out.
func profileTable() string {
	var rows strings.Builder
	fmt.Fprintf(&rows, "|field|%s|\n|%s\n", strings.Join(Profiles(), "|"), strings.Repeat("---|", 1+len(Profiles())))
	byField := map[string][]string{}
	for _, name := range Profiles() {
		for pointer, value := range eachField(reflect.ValueOf(profileOrDefault(name)), "") {
			byField[pointer] = append(byField[pointer], shown(value))
		}
	}
	for pointer := range eachField(reflect.ValueOf(Default()), "") {
		cells := byField[pointer]
		for i := range cells[1:] {
			if cells[i+1] == cells[0] {
				cells[i+1] = ""
			}
		}
		if strings.Join(cells[1:], "") != "" && pointer != "/profile" && !strings.HasPrefix(pointer, "/wording/") {
			fmt.Fprintf(&rows, "|`%s`|%s|\n", dotted(pointer), strings.Join(cells, "|"))
		}
	}
	return rows.String()
}

// wordingTable has the texts of the default profile; those of the systems are in their profiles.
func wordingTable() string {
	var rows strings.Builder
	rows.WriteString("|field|where|values|text|\n|---|---|---|---|\n")
	for pointer, value := range eachField(reflect.ValueOf(Default().Wording), "/wording") {
		f := fields[pointer]
		text := strings.ReplaceAll(value.String(), "\n", `\n`)
		fmt.Fprintf(&rows, "|`%s`|%s|`{%s}`|`%s`|\n", dotted(pointer), f.Does, strings.Join(f.Names, "}{"), text)
	}
	return rows.String()
}

func dotted(pointer string) string { return strings.ReplaceAll(pointer[1:], "/", ".") }

func shown(value reflect.Value) string {
	switch value.Kind() {
	case reflect.Slice:
		return strings.Trim(fmt.Sprintf("%v", value.Interface()), "[]") + map[bool]string{true: "none"}[value.Len() == 0]
	case reflect.Map:
		return map[bool]string{true: "none", false: fmt.Sprintf("%d tools", value.Len())}[value.Len() == 0]
	case reflect.Float64:
		return fmt.Sprintf("%.4g", value.Float())
	case reflect.String:
		return map[bool]string{true: "built in", false: value.String()}[value.String() == ""]
	}
	return fmt.Sprint(value.Interface())
}

func possible(pointer string, of reflect.Type) string {
	f := fields[pointer]
	if of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		return map[reflect.Kind]string{reflect.Slice: "list of ", reflect.Map: "object: tool to "}[of.Kind()] + possible(pointer, of.Elem())
	}
	if of == reflect.TypeFor[Operation]() {
		return "operation"
	}
	if choices := choicesOf(of, pointer); choices != nil {
		return "`" + strings.Join(choices, "`, `") + "`"
	}
	switch of.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return fmt.Sprintf("text≤%d", f.Bytes)
	}
	return map[bool]string{true: "0, "}[f.OrZero] + decimal(f.Low) + "–" + decimal(f.High)
}
