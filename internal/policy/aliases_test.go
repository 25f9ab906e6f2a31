package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestNamesOfTheSystemsAreAccepted(t *testing.T) {
	t.Parallel()
	for alias, ours := range map[string]string{
		`{"profile":"tool_compaction"}`:                                                                                       `{"profile":"tool-compaction"}`,
		`{"profile":"llm_proxy","thresholdRatio":1,"hard":1}`:                                                                 `{"profile":"llm-proxy","trigger":1,"hard":1}`,
		`{"trim":{"trimFloorRatio":0.3,"hotZoneMinTokens":7,"toolCategories":{"a":"ephemeral"}}}`:                             `{"trim":{"floor_ratio":0.3,"hot_zone_min_tokens":7,"categories":{"a":"ephemeral"}}}`,
		`{"cap":{"maxToolResultChars":9,"maxLineLength":5},"summarise":{"retainLastTurns":3}}`:                                `{"cap":{"max_chars":9,"max_line_chars":5},"summarise":{"keep_turns":3}}`,
		`{"dedupe":{"allowed_tool_categories":["list_directory"]}}`:                                                           `{"dedupe":{"allow_operations":["list_dir"]}}`,
		`{"tools":{"operations":{"x":"list_directory"}}}`:                                                                     `{"tools":{"operations":{"x":"list_dir"}}}`,
		`{"wording":{"stub_template":"gone: {resource}, {size} bytes of {toolName} {callId}, the whole of it is at {ref}."}}`: `{"wording":{"stub":"gone: {resource}, {bytes} bytes of {tool} {call_id}, the whole of it is at {ref}."}}`,
		`{"only-smaller":false,"triggerTokens":5}`:                                                                            `{"only_smaller":false,"trigger_tokens":5}`,
	} {
		got, err := Parse([]byte(alias))
		if err != nil {
			t.Errorf("%s: %v", alias, err)
			continue
		}
		want, err := Parse([]byte(ours))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, policy (-want +got):\n%s", alias, err, diff)
		}
		if renamed := canonical([]byte(alias)); string(canonical(renamed)) != string(renamed) || strings.Contains(string(renamed), "stub_template") {
			t.Errorf("%s is stored as %s", alias, renamed)
		}
	}
}

func TestEveryAliasIsOfAField(t *testing.T) {
	t.Parallel()
	for pointer, name := range aliases {
		at := strings.LastIndexByte(pointer, '/')
		if _, ok := fields[pointer[:at]+"/"+name]; !ok {
			t.Errorf("%s means %s, which no policy has", pointer, name)
		}
		if _, ok := fields[pointer]; ok || snake(pointer[at+1:]) == name {
			t.Errorf("%s needs no alias", pointer)
		}
	}
	for of, names := range valueAliases {
		for alias, value := range names {
			if list := choicesOf(of, "/profile"); !slices.Contains(list, value) && !slices.Contains(choices[of], value) || slices.Contains(choices[of], alias) {
				t.Errorf("%v: %s means %s", of, alias, value)
			}
		}
	}
}

func TestAnAliasIsMergedAsItsField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, patch, want string }{
		{`{"trim":{"floor_ratio":0.3}}`, `{"trim":{"trimFloorRatio":0.2}}`, `{"trim":{"floor_ratio":0.2}}`},
		{`{"trim":{"trimFloorRatio":0.3,"enabled":true}}`, `{"trim":{"floor_ratio":0.2}}`, `{"trim":{"floor_ratio":0.2,"enabled":true}}`},
		{``, `{"compactionThreshold":0.6, "target":0.5}`, `{"trigger":0.6, "target":0.5}`},
	} {
		if got := string(Merge([]byte(c.old), []byte(c.patch))); got != c.want {
			t.Errorf("%s and then %s: got %s, want %s", c.old, c.patch, got, c.want)
		}
	}
	stored, err := ResolveStored([]byte(`{"cap":{"maxLineLength":99}}`), nil, "")
	if err != nil || string(stored.Patch) != `{"cap":{"max_line_chars":99}}` {
		t.Errorf("stored as %s, %v", stored.Patch, err)
	}
}

func TestAProblemOfAnAliasPointsAtIt(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{"trim":{"trimFloorRatio":"x"}}`:                      "/trim/trimFloorRatio",
		`{"trim":{"trimFloorRatio":7}}`:                        "/trim/trimFloorRatio",
		`{"trim":{"toolCategories":{"a":"x"}}}`:                "/trim/toolCategories/a",
		`{"trim":{"floor_ratio":0.2,"trimFloorRatio":0.3}}`:    "/trim/trimFloorRatio",
		`{"trim":{"floorRatio":0.2,"trimFloorRatio":0.3}}`:     "/trim/trimFloorRatio",
		`{"dedupe":{"allowed_tool_categories":["list_dirs"]}}`: "/dedupe/allowed_tool_categories/0",
	} {
		_, err := Parse([]byte(document))
		var invalid *session.InvalidError
		if !errors.As(err, &invalid) || len(invalid.Problems) != 1 || invalid.Problems[0].Pointer != want {
			t.Errorf("%s: %v, want a problem at %s", document, err, want)
		}
	}
}
