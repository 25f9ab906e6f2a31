package compact

import (
	"errors"
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
		"a field twice":             {`{"target":0.4,"target":0.5}`, []string{"/target repeated_field"}},
		"a category nobody knows":   {`{"trim":{"categories":{"a/b":"x"}}}`, []string{"/trim/categories/a~1b unknown_category"}},
		"an overflowing number":     {`{"target":1e999}`, []string{"/target wrong_type"}},
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
