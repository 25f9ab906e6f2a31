package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestParsePolicyMerges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		document string
		change   func(*Policy)
	}{
		"nothing is the default":        {``, func(*Policy) {}},
		"an empty object is it too":     {`{}`, func(*Policy) {}},
		"one number changes":            {`{"target": 0.3}`, func(p *Policy) { p.Target = 0.3 }},
		"a field of a section changes":  {`{"trim":{"bookend_max_chars":3000}}`, func(p *Policy) { p.Trim.BookendMaxChars = 3000 }},
		"null is the default":           {`{"target":null,"cap":null}`, func(*Policy) {}},
		"a list replaces the default's": {`{"protect":{"tools":["null","b"]}}`, func(p *Policy) { p.Protect.Tools = []string{"null", "b"} }},
		"a tool joins the categories": {
			`{"trim":{"categories":{"mine":"ephemeral"}}}`, func(p *Policy) { p.Trim.Categories["mine"] = Ephemeral },
		},
		"null takes a tool out of the categories": {
			`{"trim":{"categories":{"Read":null}}}`, func(p *Policy) { delete(p.Trim.Categories, "Read") },
		},
		"a fraction of zeros is whole": {
			`{"protect":{"last_units":7.00},"cap":{"max_tokens":20000.0}}`, func(p *Policy) { p.Protect.LastUnits, p.Cap.MaxTokens = 7, 20_000 },
		},
		"a list may be empty": {`{"protect":{"tools":[]}}`, func(p *Policy) { p.Protect.Tools = []string{} }},
		"names are unescaped": {
			`{"protect":{"tools":["\u0061\ud83d\ude00","\\u0000"]},"trim":{"categories":{"b":"\u0065phemeral"}}}`,
			func(p *Policy) {
				p.Protect.Tools = []string{"a😀", `\u0000`}
				p.Trim.Categories["b"] = Ephemeral
			},
		},
		"names of values, and of what has some": {
			`{"tokens":{"tokenizer":"o200k"},"dedupe":{"identity":"fields","fields":{"Read":["path","offset"],"x":[]},"deny_operations":["search"]}}`,
			func(p *Policy) {
				p.Tokens.Tokenizer, p.Dedupe.Identity = O200k, ByFields
				p.Dedupe.Fields, p.Dedupe.DenyOperations = map[string][]string{"Read": {"path", "offset"}, "x": {}}, []Operation{Search}
			},
		},
		"a limit of 0 is none": {`{"cap":{"max_tokens":0,"max_bytes":100000}}`, func(p *Policy) { p.Cap.MaxTokens, p.Cap.MaxBytes = 0, 100_000 }},
		"texts may hold braces": {
			`{"wording":{"clear":"{} {ref} {\"a\"}"},"summarise":{"prompt":"","directives":["in {English}"]}}`,
			func(p *Policy) { p.Wording.Clear, p.Summarise.Directives = `{} {ref} {"a"}`, []string{"in {English}"} },
		},
		"no tail is right where trim is off": {
			`{"cap":{"tail_chars":0},"trim":{"enabled":false}}`, func(p *Policy) { p.Cap.TailChars, p.Trim.Enabled = 0, false },
		},
		"bookends may exceed a cap that is off": {
			`{"cap":{"enabled":false},"trim":{"bookend_max_chars":9000}}`, func(p *Policy) { p.Cap.Enabled, p.Trim.BookendMaxChars = false, 9000 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := Default()
			c.change(&want)
			got, err := Parse([]byte(c.document))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicyDocumentIsParsedBack(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Cache.TTLSeconds, p.Protect.Tools = 300, []string{`"quoted"`}
	delete(p.Trim.Categories, "Read")
	got, err := Parse(p.Document())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}

func TestEveryProfileIsAValidPolicy(t *testing.T) {
	t.Parallel()
	for _, name := range Profiles() {
		want, err := Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range []string{`{"profile":"` + name + `"}`, string(want.Document())} {
			got, err := Parse([]byte(document))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: %v, policy (-want +got):\n%s", name, err, diff)
			}
		}
	}
}

// TestAProfileOfASystemSaysAll: each sets every field, or switches its stage off, so that no later default of ours acts
// in it.
func TestAProfileOfASystemSaysAll(t *testing.T) {
	t.Parallel()
	for _, name := range Profiles()[1:] {
		document, err := documents.ReadFile("profiles/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var said map[string]any
		if err := json.Unmarshal(document, &said); err != nil {
			t.Fatal(err)
		}
		for pointer := range fields {
			section, field, nested := strings.Cut(pointer[1:], "/")
			value, ok := said[section]
			if of, _ := value.(map[string]any); nested && of["enabled"] != false {
				_, ok = of[field]
			}
			if !ok && section != "wording" {
				t.Errorf("%s does not say %s", name, pointer)
			}
		}
		if said["media_bytes"] != 0.0 || said["trigger_bytes"] != 0.0 {
			t.Errorf("%s goes by bytes, which its system does not", name)
		}
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		document string
		want     []string // pointer code
	}{
		"what is no JSON":           {`{"target":}`, []string{" invalid_json"}},
		"what is no object":         {`[1]`, []string{" wrong_type"}},
		"a field that is no number": {`{"target":"0.5"}`, []string{"/target wrong_type"}},
		"a fraction for a count":    {`{"protect":{"last_units":1.5}}`, []string{"/protect/last_units wrong_type"}},
		"a list with null":          {`{"protect":{"tools":["a",null]}}`, []string{"/protect/tools/1 wrong_type"}},
		"a number for a section":    {`{"cap":3}`, []string{"/cap wrong_type"}},
		"a field twice":             {`{"target":0.4,"t\u0061rget":0.5}`, []string{"/target invalid_json"}},
		"a category nobody knows":   {`{"trim":{"categories":{"a/b":"x"}}}`, []string{"/trim/categories/a~1b unknown_value"}},
		"an overflowing number":     {`{"target":1e999}`, []string{"/target out_of_range"}},
		"a count beyond 64 bits":    {`{"cap":{"max_tokens":99999999999999999999}}`, []string{"/cap/max_tokens out_of_range"}},
		"a count with an exponent":  {`{"cap":{"max_tokens":1e3}}`, []string{"/cap/max_tokens wrong_type"}},
		"a number for a switch":     {`{"cap":{"enabled":1}}`, []string{"/cap/enabled wrong_type"}},
		"an object for a list":      {`{"protect":{"tools":{}}}`, []string{"/protect/tools wrong_type"}},
		"a name with half a pair":   {`{"protect":{"tools":["a","\ud800"]}}`, []string{"/protect/tools/1 invalid_text"}},
		"a name with NUL":           {`{"dedupe":{"deny_tools":["\u0000"]}}`, []string{"/dedupe/deny_tools/0 invalid_text"}},
		"an empty name":             {`{"dedupe":{"allow_tools":[""]}}`, []string{"/dedupe/allow_tools/0 out_of_range"}},
		"a name that is too long":   {`{"protect":{"tools":["` + strings.Repeat("x", 129) + `"]}}`, []string{"/protect/tools/0 out_of_range"}},
		"more names than a list has": {
			`{"protect":{"tools":["x"` + strings.Repeat(`,"x"`, 1000) + `]}}`, []string{"/protect/tools out_of_range"},
		},
		"a category for half a pair": {`{"trim":{"categories":{"\ud800":"ephemeral"}}}`, []string{"/trim/categories/\ufffd invalid_text"}},
		"more categories than there may be": {
			`{"trim":{"categories":{` + manyCategories(2000) + `}}}`, []string{"/trim/categories out_of_range"},
		},
		"a document that is too large": {`{"protect":{"tools":["` + strings.Repeat("x", 8<<20) + `"]}}`, []string{" out_of_range"}},
		"a document that is too large with its defaults": {
			`{"protect":{"tools":["` + strings.Repeat(strings.Repeat("<", 127)+`","`, 100) + `<"]}}`, []string{" out_of_range"},
		},
		"a target in tokens at the trigger": {`{"trigger_tokens":5000,"target_tokens":5000}`, []string{"/target_tokens contradiction"}},
		"a target at the trigger":           {`{"target":0.8,"trigger":0.8}`, []string{"/target contradiction"}},
		"a trigger above hard":              {`{"hard":0.7}`, []string{"/hard contradiction"}},
		"a profile nobody knows":            {`{"profile":"cortx"}`, []string{"/profile unknown_value"}},
		"a profile that is no name":         {`{"profile":3}`, []string{"/profile wrong_type"}},
		"a tokenizer nobody knows":          {`{"tokens":{"tokenizer":"p50k"}}`, []string{"/tokens/tokenizer unknown_value"}},
		"an operation nobody knows":         {`{"dedupe":{"deny_operations":["search","reed"]}}`, []string{"/dedupe/deny_operations/1 unknown_value"}},
		"a table with a number":             {`{"tools":{"operations":{"a":1,"b":"search"}}}`, []string{"/tools/operations/a wrong_type"}},
		"fields that are no list":           {`{"dedupe":{"fields":{"Read":"path"}}}`, []string{"/dedupe/fields/Read wrong_type"}},
		"a field without a name":            {`{"dedupe":{"fields":{"Read":["path",""]}}}`, []string{"/dedupe/fields/Read/1 out_of_range"}},
		"a limit below none":                {`{"cap":{"max_lines":-1}}`, []string{"/cap/max_lines out_of_range"}},
		"a directive of two lines":          {`{"summarise":{"directives":["a\nb"]}}`, []string{"/summarise/directives/0 invalid_text"}},
		"a template with an unknown name":   {`{"wording":{"clear":"{ref} of {tool}"}}`, []string{"/wording/clear invalid_template"}},
		"a template with an open brace":     {`{"wording":{"stub":"{ref} of {tool, an older result of the same call, superseded"}}`, []string{"/wording/stub invalid_template"}},
		"an empty template":                 {`{"wording":{"cap":""}}`, []string{"/wording/cap out_of_range"}},
		"a summary without its text":        {`{"wording":{"summary":"messages {first} to {last}"}}`, []string{"/wording/summary invalid_template"}},
		"a cleared line that is too long": {`{"wording":{"clear":"` + strings.Repeat("x", 150) + `"}}`, []string{
			"/wording/clear contradiction", "/wording/clear contradiction",
		}},
		"a short placeholder":            {`{"wording":{"placeholder":"gone"}}`, []string{"/wording/placeholder contradiction"}},
		"a cap without a limit":          {`{"cap":{"max_tokens":0,"max_ratio":0,"unit_ratio":0}}`, []string{"/cap/max_tokens contradiction"}},
		"a budget upside down":           {`{"budget":{"min_tokens":70000}}`, []string{"/budget/min_tokens contradiction"}},
		"a cache dearer to read":         {`{"economy":{"cache_write":0.05}}`, []string{"/economy/cache_write contradiction"}},
		"two lifetimes of one cache":     {`{"cache":{"ttl_seconds":60},"economy":{"enabled":true}}`, []string{"/cache/ttl_seconds contradiction"}},
		"turns of which nothing is kept": {`{"protect":{"last_turns":2,"max_turn_ratio":0}}`, []string{"/protect/max_turn_ratio contradiction"}},
		"identity without fields":        {`{"dedupe":{"identity":"fields"}}`, []string{"/dedupe/identity contradiction"}},
		"five mistakes, all named": {
			`{"taget":0.4,"trigger":7,"protect":{"last_units":"four"},"dedupe":{"keep_last":0},"budget":{"min_tokens":70000}}`,
			[]string{
				"/taget unknown_field", "/protect/last_units wrong_type", "/trigger out_of_range", "/dedupe/keep_last out_of_range",
				"/budget/min_tokens contradiction",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(c.document))
			var invalid *session.InvalidError
			if !errors.As(err, &invalid) || invalid.Code != "invalid_request" {
				t.Fatalf("got %v", err)
			}
			var got []string
			for _, p := range invalid.Problems {
				got = append(got, p.Pointer+" "+p.Code)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParsePolicySuggests(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"taget":0.4}`:                   `did you mean "target"?`,
		`{"trim":{"bookend_max_char":1}}`: `did you mean "bookend_max_chars"?`,
		`{"cap":{"zzzzzzzz":1}}`:          `there are enabled, at_insertion, max_tokens, max_bytes`,
	} {
		if _, err := Parse([]byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say that %s", document, err, want)
		}
	}
}

// manyCategories returns the members of an object that names n tools.
func manyCategories(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"t%d":"ephemeral"`, i)
	}
	return strings.Join(members, ",")
}

func TestTheLargestPolicyIsParsedBack(t *testing.T) {
	t.Parallel()
	named := `{"protect":{"tools":["` + strings.Repeat("x", 128) + `"` + strings.Repeat(`,"x"`, 999) + `]},`
	for _, document := range []string{
		named + `"trim":{"categories":{` + manyCategories(1900) + `}}}`,
		`{"protect":{"tools":["` + strings.Repeat(strings.Repeat("<", 127)+`","`, 78) + `<"]}}`,
	} {
		want, err := Parse([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(want.Document())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, policy (-want +got):\n%s", err, diff)
		}
	}
}

func TestPolicyProblemsSayWhatWasWritten(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"cap":{"max_tokens":99999999999999999999}}`:    "must be from 1 to 10000000, or 0, not 99999999999999999999",
		`{"cache":{"ttl_seconds":-9223372036854775809}}`: "must be from 0 to 604800, not -9223372036854775809",
		`{"target":1e999}`:                          "must be from 0.00001 to 1, not 1e999",
		`{"target":0.80,"trigger":0.80,"hard":0.9}`: "0.80 must be below /policy/trigger (0.80)",
		`{"cap":{"max_tokens":4.5}}`:                "must be a whole number, written in digits, from 1 to 10000000, or 0, not 4.5",
	} {
		_, err := ParseAt("/policy", []byte(document))
		var invalid *session.InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Problems[0].Pointer, "/policy/") || !strings.Contains(invalid.Problems[0].Detail, want) {
			t.Errorf("%s: got %v, want it to say %s", document, err, want)
		}
	}
}

// TestAnOlderDocumentIsFilledFromItsProfile parses documents that were stored before some of the fields existed.
func TestAnOlderDocumentIsFilledFromItsProfile(t *testing.T) {
	t.Parallel()
	for _, name := range Profiles() {
		want := profileOrDefault(name)
		for pointer := range eachField(reflect.ValueOf(want), "") {
			if pointer == "/profile" {
				continue
			}
			var document map[string]any
			if err := json.Unmarshal(want.Document(), &document); err != nil {
				t.Fatal(err)
			}
			section, leaf, nested := strings.Cut(pointer[1:], "/")
			if nested {
				delete(document[section].(map[string]any), leaf)
			} else {
				delete(document, section)
			}
			older, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(older)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s without %s: %v, policy (-want +got):\n%s", name, pointer, err, diff)
			}
		}
	}
}

// TestASettingOfASystemIsAPolicy sets what the five systems accept.
func TestASettingOfASystemIsAPolicy(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		`{"profile":"cortex","trim":{"bookend_max_chars":10,"bookend_min_chars":4},"cap":{"head_chars":3,"tail_chars":0}}`,
		`{"profile":"cortex","trim":{"bookend_max_chars":10,"bookend_min_chars":20,"extended_retention_multiplier":0.5}}`,
		`{"profile":"cortex","trim":{"floor_ratio":0.9}}`,
		`{"profile":"falai","cap":{"max_chars":1,"head_chars":1}}`,
		`{"profile":"llm-proxy","dedupe":{"allow_operations":["search"],"deny_operations":["search"]}}`,
		`{"profile":"llm-proxy","dedupe":{"allow_tools":["a"],"deny_tools":["a"]},"trigger_tokens":100000}`,
		`{"profile":"tool-compaction","dedupe":{"argument_bytes":0,"min_bytes":1}}`,
		`{"profile":"codelia","cap":{"max_bytes":20},"budget":{"tokens":5},"tokens":{"tokenizer":"bytes4"}}`,
		`{"trigger":0.0001,"target":0.00001,"hard":0.5,"auto":false,"enabled":false,"only_smaller":false}`,
		`{"trigger_tokens":1,"target":0.9}`,
	} {
		if _, err := Parse([]byte(document)); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	}
}
