package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// samples are the sample configurations of the systems' documents, and what they change of the system's profile.
var samples = map[string]struct {
	change  func(*policy.Policy)
	window  int
	omitted []string
}{
	"cortex.json": {
		func(p *policy.Policy) { p.Trim.Categories["QueryDatabase"] = policy.NonReproducible }, 0,
		[]string{"maxAggregateTurnTokens"},
	},
	"falai.json": {
		func(p *policy.Policy) { p.Protect.LastMessages, p.Summarise.KeepMessages = 10, 10 }, 100_000,
		[]string{"compaction.provider", "name"},
	},
	"llm-proxy.yaml": {
		func(p *policy.Policy) {
			p.TriggerTokens, p.TargetTokens, p.Dedupe.Redact = 100_001, 100_000, true
			p.Wording.Stub = "[COMPACTED: {resource}] Removed {bytes} bytes of previous output.\n" +
				"A more recent result for this resource is available later in the conversation.\n"
		}, 150_000,
		[]string{"backends", "compaction.max_stubs_per_resource"},
	},
	"codelia.json": {
		func(p *policy.Policy) {
			p.Summarise.Retain = false
		}, 0,
		[]string{"compaction.model", "compaction.summaryDirectives"},
	},
	"tool_compaction.json": {
		func(p *policy.Policy) {
			p.Dedupe.Fields = map[string][]string{"read_file_content": {"path", "position", "length"}}
		}, 0,
		[]string{"conversationContextStrategyId"},
	},
}

func TestTheSystemsOwnSamplesAreTheirProfiles(t *testing.T) {
	t.Parallel()
	if len(samples) != len(Systems()) {
		t.Errorf("there are %d systems and %d samples", len(Systems()), len(samples))
	}
	for name, c := range samples {
		file, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		system := SystemOf("/etc/my-" + name)
		got, err := Translate(system, file)
		if err != nil {
			t.Errorf("%s, of %s: %v", name, system, err)
			continue
		}
		is, err := policy.Parse(got.Patch)
		if err != nil {
			t.Fatal(err)
		}
		want, err := policy.Profile(system)
		if err != nil {
			t.Fatal(err)
		}
		c.change(&want)
		if diff := cmp.Diff(want, is); diff != "" || got.Window != c.window {
			t.Errorf("%s: window %d, policy (-want +got):\n%s", name, got.Window, diff)
		}
		checkListed(t, name, file, got, c.omitted)
	}
}

// checkListed checks that each setting of a file is listed once, as translated or with the reason why not.
func checkListed(t *testing.T, name string, file []byte, got *Translation, omitted []string) {
	t.Helper()
	var left []string
	for _, s := range got.Omitted {
		left = append(left, s.Name)
		if s.Why == "" || len(s.Fields) > 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	slices.Sort(left)
	if diff := cmp.Diff(omitted, left); diff != "" {
		t.Errorf("%s: not translated (-want +got):\n%s", name, diff)
	}
	for _, s := range append(slices.Clone(got.Translated), got.Omitted...) {
		leaf := s.Name[strings.LastIndexByte(s.Name, '.')+1:]
		if n := strings.Count(string(file), leaf); n < 1 && s.Name != "enabled" {
			t.Errorf("%s has no %s", name, s.Name)
		}
	}
}

// TestEverySettingIsOfAField holds the table to the policy's fields.
func TestEverySettingIsOfAField(t *testing.T) {
	t.Parallel()
	_, sources, err := policy.ParseLayers()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{"share": true, "count": true, "switch": true, "text": true, "names": true, "table": true}
	for name, system := range systems {
		if _, err := policy.Profile(system.Profile); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, section := range system.Sections {
			for _, s := range section.Settings {
				for _, field := range s.To {
					if _, ok := sources[field]; !ok {
						t.Errorf("%s: %s is %s, which no policy has", name, s.Name, field)
					}
				}
				if translated := len(s.To) > 0 || s.Window; translated == (s.Why != "") || translated != kinds[s.Kind] {
					t.Errorf("%s: %+v", name, s)
				}
				if (s.Low != nil || s.High != nil || s.Required) != (s.Refused != "") {
					t.Errorf("%s: %s has no text for what is refused", name, s.Name)
				}
			}
		}
	}
}

func TestASettingIsTranslated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ system, file, want string }{
		{"cortex", `{"trimFloorRatio":0.1}`, `{"profile":"cortex","target":0.1,"trim":{"floor_ratio":0.1}}`},
		{"cortex", `{"trimFloorRatio":0.9}`, `{"profile":"cortex","trim":{"floor_ratio":0.9}}`},
		{"cortex", `{"compaction":{"hotZoneMinTokens":5}}`, `{"profile":"cortex","trim":{"hot_zone_min_tokens":5}}`},
		{"falai", `{"compaction":{"compactionThreshold":0.7}}`, `{"profile":"falai","trigger":0.7,"target":0.69}`},
		{"falai", `{"compaction":{"enabled":false}}`, `{"profile":"falai","enabled":false}`},
		{"llm-proxy", `compaction: {}`, `{"profile":"llm-proxy","enabled":false,"trigger_tokens":100001,"target_tokens":100000}`},
		{"llm-proxy", "compaction:\n  enabled: true\n  token_threshold: 5\n  denied_tool_categories: [list_directory]\n",
			`{"profile":"llm-proxy","enabled":true,"trigger_tokens":6,"target_tokens":5,"dedupe":{"deny_operations":["list_directory"]}}`},
		{"llm-proxy", `{"token_threshold":9899,"max_tokens":10000}`, `{"profile":"llm-proxy","enabled":false,"trigger_tokens":9900,"target_tokens":9899,"hard":0.99}`},
		{"llm-proxy", `{"token_threshold":5999,"max_tokens":4000}`, `{"profile":"llm-proxy","enabled":false,"trigger_tokens":6000,"target_tokens":5999,"hard":1}`},
		{"codelia", `{"thresholdRatio":0.97,"contextBudgetTokens":7}`,
			`{"profile":"codelia","trigger":0.97,"hard":0.97,"summarise":{"over":0.97},"budget":{"tokens":7}}`},
		{"codelia", `{"toolOutputCache":{"enabled":false,"totalBudgetTrim":true},"compaction":{"auto":false}}`,
			`{"profile":"codelia","auto":false,"cap":{"enabled":false},"budget":{"enabled":false}}`},
		{"codelia", `{"model":"mini","summaryPrompt":"S","summaryDirectives":["d"],"retainPrompt":"R","retainDirectives":["r"],"retainLastTurns":2}`,
			`{"profile":"codelia","summarise":{"model":"mini","prompt":"S","directives":["d"],"retain_prompt":"R","retain_directives":["r"],"keep_turns":2}}`},
		{"codelia", `{"summaryPrompt":"S","retainDirectives":["r"]}`, `{"profile":"codelia"}`},
		{"codelia", `{"compaction":{"model":null,"retainPrompt":null,"summaryPrompt":"S"}}`, `{"profile":"codelia","summarise":{"retain":false}}`},
		{"codelia", `{"toolOutputCache":{"contextBudgetTokens":0,"maxMessageBytes":0},"compaction":{"retainLastTurns":-1}}`,
			`{"profile":"codelia","budget":{"tokens":1},"cap":{"max_bytes":1,"head_chars":1},"summarise":{"keep_turns":0}}`},
		{"tool-compaction", `{"inputTrimBytes":-5,"outputTrimBytes":-5}`, `{"profile":"tool-compaction","dedupe":{"argument_bytes":0,"min_bytes":1}}`},
		{"tool-compaction", `{"outputTrimBytes":500,"toolIdentifierFields":[]}`, `{"profile":"tool-compaction","dedupe":{"min_bytes":501,"fields":{}}}`},
		{"codelia", `{"compaction":{"auto":false},"toolOutputCache":null}`, `{"profile":"codelia","auto":false}`},
		{"codelia", `{"compaction":{"auto":false},"compactions":{"on":1}}`, `{"profile":"codelia","auto":false}`},
		{"cortex", `{"hotZoneRatio":0.1,"hotZoneRatios":1}`, `{"profile":"cortex","trim":{"hot_zone_ratio":0.1}}`},
		{"llm-proxy", "compaction:\n  enabled: false\n  Enable: true\n", `{"profile":"llm-proxy","enabled":false,"trigger_tokens":100001,"target_tokens":100000}`},
		{"tool-compaction", `{"inputTrimBytes":"100"}`, `{"profile":"tool-compaction"}`},
	} {
		got, err := Translate(c.system, []byte(c.file))
		if err != nil {
			t.Errorf("%s %s: %v", c.system, c.file, err)
			continue
		}
		var want, is any
		if err := errors.Join(json.Unmarshal([]byte(c.want), &want), json.Unmarshal(got.Patch, &is)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, is) {
			t.Errorf("%s %s: got %s, want %s", c.system, c.file, got.Patch, c.want)
		}
	}
}

// TestAWindowThatNoSessionHasIsNotTranslated has windows that the system takes and a session does not.
func TestAWindowThatNoSessionHasIsNotTranslated(t *testing.T) {
	t.Parallel()
	for tokens, want := range map[int]int{500: 0, 999: 0, 1000: 1000, 10_000_000: 10_000_000, 10_000_001: 0} {
		got, err := Translate("llm-proxy", fmt.Appendf(nil, `{"max_tokens":%d}`, tokens))
		if err != nil {
			t.Fatal(err)
		}
		if got.Window != want {
			t.Errorf("%d tokens are a window of %d, want %d", tokens, got.Window, want)
		}
		for _, s := range got.Omitted {
			if want > 0 || s.Name != "max_tokens" || s.Why != "a session's window_tokens are 1000 to 10000000" {
				t.Errorf("%d tokens: omitted %+v", tokens, s)
			}
		}
		if want == 0 && len(got.Omitted) == 0 {
			t.Errorf("%d tokens are left out without a word", tokens)
		}
	}
}

func TestWhatASystemRefusesIsRefusedInItsWords(t *testing.T) {
	t.Parallel()
	const engine = `"maxTokens":100,"maxToolResultChars":40`
	for _, c := range []struct{ system, file, want string }{
		{"falai", `{"compactionThreshold":0.49,"preserveRecentCount":2,` + engine + `}`, "/compactionThreshold: compactionThreshold must be between 0.5 and 0.95, got 0.49"},
		{"falai", `{"compactionThreshold":0.951,"preserveRecentCount":2,` + engine + `}`, "/compactionThreshold: compactionThreshold must be between 0.5 and 0.95, got 0.951"},
		{"falai", `{"preserveRecentCount":2,` + engine + `}`, "/compactionThreshold: compactionThreshold must be between 0.5 and 0.95, got undefined"},
		{"falai", `{"compactionThreshold":"0.8","preserveRecentCount":2,` + engine + `}`, "/compactionThreshold: compactionThreshold must be between 0.5 and 0.95, got 0.8"},
		{"falai", `{"compactionThreshold":0.5,"preserveRecentCount":1,` + engine + `}`, "/preserveRecentCount: preserveRecentCount must be >= 2, got 1"},
		{"falai", `{"compaction":{"maxToolResultChars":0}}`, "/compaction/maxToolResultChars: maxToolResultChars must be > 0, got 0"},
		{"falai", `{"compaction":{"maxTokens":0}}`, "/compaction/maxTokens: maxTokens must be > 0, got 0"},
		{"falai", `{"compaction":{"maxToolResultChars":0.5}}`, "/compaction/maxToolResultChars: must be a whole number, not 0.5"},
		{"falai", `{"compaction":{"maxTokens":0.5}}`, "/compaction/maxTokens: must be a whole number, not 0.5"},
		{"falai", `{"compaction":{"maxTokens":-0.5}}`, "/compaction/maxTokens: maxTokens must be > 0, got -0.5"},
		{"llm-proxy", `compaction: {token_threshold: -1}`, "/compaction/token_threshold: token_threshold must be at least 0, not -1"},
		{"llm-proxy", `compaction: {enabled: 1}`, "/compaction/enabled: must be true or false, not 1"},
		{"llm-proxy", `compaction: {stub_template: "{who}"}`, "/compaction/stub_template: wording.stub there is no value {who}"},
		{"llm-proxy", `compaction: {denied_tool_categories: [search, reads]}`, "/compaction/denied_tool_categories/1: dedupe.deny_operations.1 \"reads\" is not known here"},
		{"codelia", `{"thresholdRatio":2}`, "/thresholdRatio: trigger must be from 0.00001 to 1, not 2"},
		{"cortex", `{"toolCategories":{"a":"cheap"}}`, "/toolCategories/a: trim.categories.a \"cheap\" is not known here"},
		{"cortex", `{"bookendMaxChars":true}`, "/bookendMaxChars: must be a number, not true"},
		{"cortex", `{"bookendMaxChar":1}`, "/bookendMaxChar: the system has no such setting: did you mean \"bookendMaxChars\"?"},
		{"falai", `{"compaction":{"compactionTreshold":0.7}}`, "/compaction/compactionTreshold: the system has no such setting: did you mean \"compactionThreshold\"?"},
		{"codelia", `{"compacton":{"auto":false}}`, "/compacton: the system has no such setting: did you mean \"compaction\"?"},
		{"codelia", `{"compaction":{},"toolOutputCach":{"maxMessageBytes":0}}`, "/toolOutputCach: the system has no such setting: did you mean \"toolOutputCache\"?"},
		{"cortex", `[1]`, "the file must be an object"},
		{"cortx", `{}`, `there is no system "cortx"; there are codelia, cortex, falai`},
	} {
		_, err := Translate(c.system, []byte(c.file))
		var invalid *session.InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s %s: got %v, want %s", c.system, c.file, err, c.want)
		}
	}
}

func TestAFilesNameIsOfASystem(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"cortex.json": "cortex", "/a/Falai.config.json": "falai", "llm_proxy.yml": "llm-proxy", "x/toolCompaction.json": "tool-compaction",
		"config.yaml": "", "cortex/config.json": "", "codelia.json": "codelia",
	} {
		if got := SystemOf(file); got != want {
			t.Errorf("%s is of %q, want %q", file, got, want)
		}
	}
}
