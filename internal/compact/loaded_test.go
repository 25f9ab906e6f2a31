package compact_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// loads adds a search that loads tools, and returns what must stay of it.
func (l *compactedLog) loads(tool string) string {
	id := len(l.entries)
	l.add(fmt.Sprintf(`{"role":"user","content":"find %s"}`, tool))
	if l.format == session.Anthropic {
		l.add(fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"s%d","name":"search","input":{}}]}`, id))
		found := fmt.Sprintf(`{"type":"tool_result","tool_use_id":"s%d","content":[{"type":"text","text":"`+strings.Repeat("found ", 20)+`"},{"type":"tool_reference","tool_name":"%s"}]}`, id, tool)
		l.add(`{"role":"user","content":[` + found + `]}`)
		l.add(`{"role":"assistant","content":"found"}`)
		return found
	}
	if l.format == session.OpenAIChat {
		l.add(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"s%d","type":"function","function":{"name":"search","arguments":"{}"}}]}`, id))
		l.add(fmt.Sprintf(`{"role":"tool","tool_call_id":"s%d","content":"`+strings.Repeat("found ", 20)+`"}`, id))
		found := fmt.Sprintf(`{"role":"system","tools":[{"type":"function","function":{"name":"%s","parameters":{}}}]}`, tool)
		l.add(found)
		l.add(`{"role":"assistant","content":"found"}`)
		return found
	}
	l.add(fmt.Sprintf(`{"type":"tool_search_call","call_id":"s%d","execution":"client","arguments":{"q":"x"}}`, id))
	found := fmt.Sprintf(`{"type":"tool_search_output","call_id":"s%d","execution":"client","tools":[{"type":"function","name":"%s","parameters":{}}]}`, id, tool)
	l.add(found)
	l.add(`{"role":"assistant","content":"found"}`)
	return found
}

// TestWhatLoadsToolsStays compacts again and again, under every profile, a session that searches tools: what has loaded
// them stays with its call, until the same tools are loaded again.
func TestWhatLoadsToolsStays(t *testing.T) {
	t.Parallel()
	for _, f := range []session.Format{session.Anthropic, session.OpenAIResponses, session.OpenAIChat} {
		for _, profile := range policy.Profiles() {
			t.Run(string(f)+" "+profile, func(t *testing.T) {
				t.Parallel()
				log := newCompactedLog(t, f, profile)
				trim := &log.in.Policy.Trim
				trim.Enabled, trim.MinTokens = true, 10 // the results that load tools are long enough to be trimmed
				first, second := log.loads("g"), log.loads("h")
				superseded := "none"
				for round := range 8 {
					if log.turns(2); round == 4 {
						superseded, first = first, log.loads("g")
						log.turns(3)
					}
					_, made := log.compact(t)
					body := string(made.Body)
					if !strings.Contains(body, second) || !strings.Contains(body, first) && strings.Contains(body, "result of") {
						t.Fatalf("round %d: what loads tools has left:\n%s", round, body)
					}
					again := 0
					if superseded == first { // in Chat Completions a declaration has no id
						again = 1
					}
					if round == 7 && profile == "default" && strings.Count(body, superseded) > again {
						t.Errorf("what is loaded again has stayed: %s", body)
					}
					checkView(t, f, made)
				}
			})
		}
	}
}

// TestWhatASearchOfTheAISDKLoadedStays compacts again and again a session in which a search of the provider's own loaded
// a tool.
func TestWhatASearchOfTheAISDKLoadedStays(t *testing.T) {
	t.Parallel()
	log := newCompactedLog(t, session.AISDK, "default")
	const mine = `{"type":"custom","providerOptions":{"anthropic":{"type":"tool-reference","toolName":"mine"}}}`
	say := func(id int, role, text string) {
		log.add(fmt.Sprintf(`{"id":"%d","role":"%s","parts":[{"type":"text","text":"%s"}]}`, id, role, text))
	}
	say(0, "user", "go on")
	log.add(`{"id":"s","role":"assistant","parts":[{"type":"tool-find","toolCallId":"a","providerExecuted":true,"state":"output-available",` +
		`"input":{},"output":[{"type":"tool_reference","toolName":"g"}]},{"type":"text","text":"found"}]}`)
	say(100, "user", "go on")
	log.add(`{"id":"c","role":"assistant","parts":[{"type":"tool-search","toolCallId":"b","state":"output-available","input":{},` +
		`"output":{"type":"content","value":[{"type":"text","text":"` + strings.Repeat("found ", 20) + `"},` + mine + `]}}]}`)
	for round := range 3 {
		for i := range 8 {
			say(20*round+2*i+1, "user", strings.Repeat("go on ", 400))
			say(20*round+2*i+2, "assistant", strings.Repeat("well ", 400))
		}
		_, made := log.compact(t)
		body := string(made.Body)
		if !strings.Contains(body, `"g"`) || !strings.Contains(body, mine) || !strings.Contains(body, "Summary of messages") {
			t.Errorf("round %d: what loads the tool has left:\n%.2000s", round, body)
		}
	}
}

// TestTheNewestSettingsStay compacts sessions whose agent changes how the model thinks and answers: the newest message
// for each setting stays, and older ones leave with what is around them.
func TestTheNewestSettingsStay(t *testing.T) {
	t.Parallel()
	for f, settings := range map[session.Format]struct{ old, newest []string }{
		session.OpenAIResponses: {
			old: []string{`{"type":"configuration_update","id":"cu_1","reasoning":{"effort":"low"}}`},
			newest: []string{
				`{"type":"configuration_update","id":"cu_2","text":{"verbosity":"low"}}`,
				`{"type":"configuration_update","id":"cu_3","reasoning":{"effort":"high"}}`,
			},
		},
		session.Anthropic: {
			old:    []string{`{"role":"system","content":[{"type":"text","text":"cu_1"}],"output_config":{"effort":"low"}}`},
			newest: []string{`{"role":"system","content":[{"type":"text","text":"cu_2"}],"output_config":{"effort":"high"}}`},
		},
	} {
		log := newCompactedLog(t, f, "default")
		log.turns(1)
		for _, setting := range append(settings.old, settings.newest...) {
			log.add(`{"role":"user","content":"and now"}`)
			log.add(setting)
			log.add(`{"role":"assistant","content":"well"}`)
			log.turns(1)
		}
		for round := range 3 {
			log.turns(8)
			_, made := log.compact(t)
			body := string(made.Body)
			for _, setting := range settings.newest {
				if !strings.Contains(body, setting) {
					t.Errorf("%s, round %d: %s has left:\n%s", f, round, setting, body)
				}
			}
			if strings.Contains(body, settings.old[0]) {
				t.Errorf("%s, round %d: %s has stayed:\n%s", f, round, settings.old[0], body)
			}
		}
	}
}

// TestASearchStaysWithWhatItFound compacts sessions in which the model calls other tools beside the search, or thinks
// before it.
func TestASearchStaysWithWhatItFound(t *testing.T) {
	t.Parallel()
	const thought = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`
	const search = `{"type":"tool_search_call","call_id":"s","execution":"client","arguments":{"q":"x"}}`
	const found = `{"type":"tool_search_output","call_id":"s","execution":"client","tools":[{"type":"function","name":"g","parameters":{}}]}`
	const call, output = `{"type":"function_call","call_id":"b","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"b","output":"r"}`
	const own, ownFound = `{"type":"tool_search_call","id":"tsc_1","call_id":null,"execution":"server","status":"completed","arguments":{}}`, `{"type":"tool_search_output","id":"tso_1","call_id":null,"execution":"server","status":"completed","tools":[{"type":"function","name":"g","parameters":{}}]}`
	for name, test := range map[string]struct{ items, stay []string }{
		"a call between":           {[]string{search, call, found, output}, []string{search, found}},
		"a call before":            {[]string{call, search, output, found}, []string{search, found}},
		"a thought before":         {[]string{thought, search, found}, []string{thought, search, found}},
		"a thought before a call":  {[]string{thought, call, search, output, found}, []string{search, found}},
		"the API's own":            {[]string{thought, own, ownFound}, []string{thought, own, ownFound}},
		"the output a while later": {[]string{search, `{"role":"user","content":"wait"}`, found}, []string{search, found}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := newCompactedLog(t, session.OpenAIResponses, "default")
			log.add(`{"role":"user","content":"go on"}`)
			for _, item := range test.items {
				log.add(item)
			}
			log.add(`{"role":"assistant","content":"well"}`)
			for round := range 3 {
				log.turns(8)
				_, made := log.compact(t)
				body := string(made.Body)
				for _, item := range test.items {
					if want := slices.Contains(test.stay, item); want != strings.Contains(body, item) && strings.HasPrefix(item, `{"type"`) {
						t.Errorf("round %d: %s is there: %t, want %t\n%s", round, item, !want, want, body)
					}
				}
				checkView(t, log.format, made)
			}
		})
	}
}
