package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestLayersLieOnTopOfOneAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tenant, own string
		change      func(*Policy)
		sources     map[string]string
	}{
		"nothing is the default profile": {"", "", func(*Policy) {}, map[string]string{"/target": "profile:default"}},
		"the tenant's holds where the session is silent": {
			`{"target":0.3,"cap":{"head_chars":9000}}`, `{"cap":{"tail_chars":7000}}`,
			func(p *Policy) { p.Target, p.Cap.HeadChars, p.Cap.TailChars = 0.3, 9000, 7000 },
			map[string]string{"/target": "tenant", "/cap/head_chars": "tenant", "/cap/tail_chars": "session", "/cap/max_tokens": "profile:default"},
		},
		"the session's wins": {
			`{"target":0.3}`, `{"target":0.4}`, func(p *Policy) { p.Target = 0.4 }, map[string]string{"/target": "session"},
		},
		"null is the layer below": {
			`{"target":0.3}`, `{"target":null,"cap":null}`, func(p *Policy) { p.Target = 0.3 }, map[string]string{"/target": "tenant"},
		},
		"a tool joins a table, null takes one out": {
			`{"trim":{"categories":{"mine":"ephemeral","Bash":null}}}`, `{"trim":{"categories":{"Read":null}},"tools":{"operations":{"a/b":"search"}}}`,
			func(p *Policy) {
				p.Trim.Categories["mine"] = Ephemeral
				delete(p.Trim.Categories, "Bash")
				delete(p.Trim.Categories, "Read")
				p.Tools.Operations["a/b"] = Search
			},
			map[string]string{
				"/trim/categories": "profile:default", "/trim/categories/mine": "tenant", "/trim/categories/Bash": "tenant",
				"/trim/categories/Read": "session", "/tools/operations/a~1b": "session", "/trim/categories/Grep": "",
			},
		},
		"a list replaces the list": {
			`{"protect":{"tools":["a","b"]}}`, `{"protect":{"tools":["c"]}}`, func(p *Policy) { p.Protect.Tools = []string{"c"} },
			map[string]string{"/protect/tools": "session"},
		},
		"the tenant's profile is the base": {
			`{"profile":"cortex","target":0.2}`, `{"hard":0.95}`,
			func(p *Policy) { *p = profileOrDefault("cortex"); p.Target, p.Hard = 0.2, 0.95 },
			map[string]string{"/profile": "tenant", "/target": "tenant", "/trigger": "profile:cortex", "/hard": "session"},
		},
		"a trigger below the profile's target takes it along": {
			`{"trigger":0.2}`, "", func(p *Policy) { p.Trigger, p.Target = 0.2, 0.06667 },
			map[string]string{"/trigger": "tenant", "/target": "tenant"},
		},
		"a trigger above the profile's hard takes it along": {
			`{"target":0.2}`, `{"trigger":0.99}`, func(p *Policy) { p.Target, p.Trigger, p.Hard = 0.2, 0.99, 0.99 },
			map[string]string{"/target": "tenant", "/hard": "session"},
		},
		"a trigger in tokens is beside a target in shares as it was": {
			`{"trigger":0.2,"trigger_tokens":100000}`, "", func(p *Policy) { p.Trigger, p.TriggerTokens = 0.2, 100000 },
			map[string]string{"/target": "profile:default"},
		},
		"the lowest trigger has a target, too": {
			`{"trigger":0.00002}`, "", func(p *Policy) { p.Trigger, p.Target = 0.00002, 0.00001 }, nil,
		},
		"a session that names a profile begins anew": {
			`{"profile":"cortex","target":0.2,"hard":0.99}`, `{"profile":"falai","trigger":0.85}`,
			func(p *Policy) { *p = profileOrDefault("falai"); p.Trigger = 0.85 },
			map[string]string{"/profile": "session", "/target": "profile:falai", "/hard": "profile:falai", "/trigger": "session"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := Default()
			c.change(&want)
			got, sources, err := ParseLayers(Layer{Name: "tenant", Document: []byte(c.tenant)}, Layer{Name: "session", Document: []byte(c.own)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
			for pointer, source := range c.sources {
				if sources[pointer] != source {
					t.Errorf("%s comes from %q, want %q", pointer, sources[pointer], source)
				}
			}
			again, err := Parse(got.Document())
			if diff := cmp.Diff(got, again); err != nil || diff != "" {
				t.Errorf("its document reads as another policy: %v\n%s", err, diff)
			}
		})
	}
}

func TestAConflictOfLayersIsToldOfTheOneThatCanBeChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tenant, own, want string }{
		{`{"trigger":0.4,"target":0.3}`, `{"target":0.5}`, "/policy/target: 0.5 must be below /policy/trigger (0.4, set by the tenant)"},
		{`{"target":0.50}`, `{"trigger":0.45}`, "/policy/trigger: 0.45 must be above /policy/target (0.50, set by the tenant)"},
		{`{"trigger_tokens":4000}`, `{"target_tokens":4000}`, "/policy/target_tokens: 4000 must be below /policy/trigger_tokens (4000, set by the tenant)"},
	} {
		_, _, err := ParseLayers(Layer{Name: "tenant", Document: []byte(c.tenant)}, Layer{Name: "session", Pointer: "/policy", Document: []byte(c.own)})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s over %s: got %v, want %s", c.own, c.tenant, err, c.want)
		}
	}
}

func TestMergedPoliciesChangeWhatBothDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, patch, want string }{
		{``, `{"target":0.4}`, `{"target":0.4}`},
		{`{"target":0.4}`, ``, `{"target":0.4}`},
		{`{}`, ` {} `, `{}`},
		{`{"target":0.4,"hard":0.9}`, `{"target":0.50}`, `{"target":0.50,"hard":0.9}`},
		{`{"cap":{"head_chars":1,"tail_chars":2}}`, `{"cap":{"tail_chars":null}}`, `{"cap":{"tail_chars":null,"head_chars":1}}`},
		{`{"cap":{"head_chars":1}}`, `{"cap":null}`, `{"cap":null}`},
		{`{"cap":null}`, `{"cap":{"head_chars":1}}`, `{"cap":{"head_chars":1}}`},
		{`{"protect":{"tools":["a"]}}`, `{"protect":{"tools":[]}}`, `{"protect":{"tools":[]}}`},
		{`{"a\"b":1}`, `{"c":2}`, `{"c":2,"a\"b":1}`},
		{`{"target":0.4}`, `{"t\u0061rget":0.3,"target":0.2}`, `{"t\u0061rget":0.3,"target":0.2}`}, // told as a problem later
	} {
		if got := string(Merge([]byte(c.old), []byte(c.patch))); got != c.want {
			t.Errorf("%s and then %s: got %s, want %s", c.old, c.patch, got, c.want)
		}
	}
}

// FuzzMergedPolicies merges two layers: what comes out is one that does what both do. Nulls and profiles aside, which
// mean more to two layers than to one.
func FuzzMergedPolicies(f *testing.F) {
	f.Add(`{"target":0.4,"cap":{"head_chars":9000}}`, `{"cap":{"tail_chars":9000,"head_chars":8500}}`)
	f.Add(`{"trim":{"categories":{"a":"ephemeral","Read":null}}}`, `{"trim":{"categories":{"a":"rereadable","Read":"ephemeral"}}}`)
	f.Add(`{"protect":{"tools":["a"]},"profile":"falai"}`, `{"protect":{"tools":[]}}`)
	f.Fuzz(func(t *testing.T, old, patch string) {
		want, _, err := ParseLayers(Layer{Name: "old", Document: []byte(old)}, Layer{Name: "patch", Document: []byte(patch)})
		if _, named := profileOf([]byte(patch)); err != nil || strings.Contains(patch, "null") || named {
			return
		}
		merged := Merge([]byte(old), []byte(patch))
		if len(merged) > maxBytes {
			return
		}
		got, err := Parse(merged)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s and then %s make %s: %v\n%s", old, patch, merged, err, diff)
		}
	})
}

func TestAProblemOfALayerPointsIntoIt(t *testing.T) {
	t.Parallel()
	_, _, err := ParseLayers(Layer{Name: "tenant", Document: []byte(`{"target":0.3}`)}, Layer{Name: "session", Pointer: "/policy", Document: []byte(`{"hard":7,"zz":1}`)})
	var invalid *session.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != 2 || invalid.Problems[0].Pointer != "/policy/zz" || invalid.Problems[1].Pointer != "/policy/hard" {
		t.Errorf("got %+v", invalid)
	}
}

func TestAModelsSummariesAreOfRangesUnlessThePolicySaysOtherwise(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]int{
		`{}`:                              1,
		`{"summarise":{"model":"small"}}`: 4,
		`{"summarise":{"model":"small","segments":1}}`:                    1,
		`{"summarise":{"segments":3}}`:                                    3,
		`{"profile":"codelia","summarise":{"model":"small"}}`:             1,
		`{"summarise":{"model":"small","style":"falai"}}`:                 1,
		`{"summarise":{"model":"small","segments":9,"style":"sections"}}`: 9,
	} {
		p, err := Parse([]byte(document))
		if got := p.Summarise.MaxSegments(); err != nil || got != want {
			t.Errorf("%s: %d summaries, want %d; %v", document, got, want, err)
		}
	}
}
