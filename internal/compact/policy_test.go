package compact

import (
	"errors"
	"fmt"
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
		"bookends may exceed a cap that is off": {
			`{"cap":{"enabled":false},"trim":{"bookend_max_chars":9000}}`, func(p *Policy) { p.Cap.Enabled, p.Trim.BookendMaxChars = false, 9000 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := DefaultPolicy()
			c.change(&want)
			got, err := ParsePolicy([]byte(c.document))
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
	p := DefaultPolicy()
	p.Cache.TTLSeconds, p.Protect.Tools = 300, []string{`"quoted"`}
	delete(p.Trim.Categories, "Read")
	got, err := ParsePolicy(p.Document())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
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
		"a list with null":          {`{"protect":{"tools":["a",null]}}`, []string{"/protect/tools wrong_type"}},
		"a number for a section":    {`{"cap":3}`, []string{"/cap wrong_type"}},
		"a field twice":             {`{"target":0.4,"target":0.5}`, []string{"/target invalid_json"}},
		"a category nobody knows":   {`{"trim":{"categories":{"a/b":"x"}}}`, []string{"/trim/categories/a~1b unknown_category"}},
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
		"a target at the trigger":   {`{"target":0.8}`, []string{"/target contradiction"}},
		"a trigger above hard":      {`{"hard":0.7}`, []string{"/trigger contradiction"}},
		"a floor above the trigger": {`{"trim":{"floor_ratio":0.9}}`, []string{"/trim/floor_ratio contradiction"}},
		"bookends above the cap":    {`{"cap":{"head_chars":1000}}`, []string{"/trim/bookend_max_chars contradiction"}},
		"a shrinking that grows":    {`{"trim":{"bookend_min_chars":2500}}`, []string{"/trim/bookend_min_chars contradiction"}},
		"five mistakes, all named": {
			`{"taget":0.4,"trigger":7,"protect":{"last_units":"four"},"dedupe":{"keep_last":0},"trim":{"bookend_min_chars":5000}}`,
			[]string{
				"/taget unknown_field", "/protect/last_units wrong_type", "/trigger out_of_range", "/dedupe/keep_last out_of_range",
				"/trim/bookend_min_chars contradiction",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParsePolicy([]byte(c.document))
			var invalid *session.InvalidError
			if !errors.As(err, &invalid) || invalid.Code != "invalid_policy" && invalid.Code != "invalid_json" {
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
		`{"taget":0.4}`:                   `"target" was probably meant`,
		`{"trim":{"bookend_max_char":1}}`: `"bookend_max_chars" was probably meant`,
		`{"cap":{"zzzzzzzz":1}}`:          `there are enabled, max_tokens, head_chars, tail_chars`,
	} {
		if _, err := ParsePolicy([]byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say that %s", document, err, want)
		}
	}
}

// manyCategories are the members of an object that names n tools.
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
		want, err := ParsePolicy([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParsePolicy(want.Document())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, policy (-want +got):\n%s", err, diff)
		}
	}
}

func TestPolicyProblemsSayWhatWasWritten(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"cap":{"max_tokens":99999999999999999999}}`:    "99999999999999999999 is not from 100 to 10000000",
		`{"cache":{"ttl_seconds":-9223372036854775809}}`: "-9223372036854775809 is not from 0 to 604800",
		`{"target":1e999}`:           "1e999 is not from 0.001 to 1",
		`{"target":0.80,"hard":0.9}`: "0.80 must be below /policy/trigger (0.8)",
		`{"cap":{"max_tokens":4.5}}`: "4.5 is no whole number",
	} {
		_, err := ParsePolicyAt("/policy", []byte(document))
		var invalid *session.InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Problems[0].Pointer, "/policy/") || !strings.Contains(invalid.Problems[0].Detail, want) {
			t.Errorf("%s: got %v, want it to say %s", document, err, want)
		}
	}
}
