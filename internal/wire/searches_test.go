package wire_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestSearchesOfToolsAreNeverAlone has what is left of searches that the caller ran: of a removed message, of one that
// was stopped, of one that waits.
func TestSearchesOfToolsAreNeverAlone(t *testing.T) {
	t.Parallel()
	const clientSearch = `{"type":"tool_search_call","call_id":"s","execution":"client","status":"completed","arguments":{"q":"x"}}`
	const clientFound = `{"type":"tool_search_output","call_id":"s","execution":"client","status":"completed","tools":[{"type":"function","name":"f","parameters":{}}]}`
	const userItem, doneItem = `{"type":"message","role":"user","content":[{"type":"input_text","text":"u"}]}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}`
	const call, output = `{"type":"function_call","call_id":"b","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"b","output":"r"}`
	const empty = `{"type":"tool_search_output","execution":"client","status":"completed","call_id":"s","tools":[]}`
	const added = `{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","parameters":{}}]}`
	nothing := strings.Replace(clientFound, `[{"type":"function","name":"f","parameters":{}}]`, `[]`, 1)
	for name, test := range map[string]struct {
		log     []string
		pending wire.Pending
		want    []string
	}{
		"together":                         {[]string{userItem, clientSearch, clientFound, doneItem, userItem}, "", []string{userItem, clientSearch, clientFound, doneItem, userItem}},
		"with a call between":              {[]string{userItem, clientSearch, call, clientFound, output}, "", []string{userItem, clientSearch, call, clientFound, output}},
		"the search is gone":               {[]string{userItem, clientFound, doneItem, userItem}, "", []string{userItem, added, doneItem, userItem}},
		"the search that found nothing":    {[]string{userItem, nothing, doneItem, userItem}, "", []string{userItem, doneItem, userItem}},
		"the output is gone":               {[]string{userItem, clientSearch, userItem, doneItem, userItem}, "", []string{userItem, clientSearch, empty, userItem, doneItem, userItem}},
		"it waits":                         {[]string{userItem, clientSearch}, "", []string{userItem, clientSearch}},
		"it waits beside a call":           {[]string{userItem, clientSearch, call, output}, "", []string{userItem, clientSearch, call, output}},
		"it waits where nothing may":       {[]string{userItem, clientSearch}, wire.SynthesizePending, []string{userItem, clientSearch, empty}},
		"it waits where what waits leaves": {[]string{userItem, clientSearch}, wire.DropPending, []string{userItem}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := wire.Options{Pending: test.pending}
			made := wiretest.Render(session.OpenAIResponses, storedOf(session.OpenAIResponses, test.log), o)
			var got []string
			for _, body := range made.Bodies {
				got = append(got, string(body))
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if found := wiretest.Validate(session.OpenAIResponses, made.Bodies, o); len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// TestToolsThatAMessageDeclaresGoToKimi renders them for Kimi, for servers that are not known, and for those that refuse
// them.
func TestToolsThatAMessageDeclaresGoToKimi(t *testing.T) {
	t.Parallel()
	const asked = `{"role":"user","content":"u"}`
	const kimiTools = `{"role":"system","tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`
	log := []string{asked, kimiTools, asked}
	beside := `{"role":"system","content":"be good",` + kimiTools[len(`{"role":"system",`):]
	for _, test := range []struct {
		model, message, want string
	}{
		{"kimi-k3", kimiTools, kimiTools}, {"moonshotai/kimi-k3.1-pro", kimiTools, kimiTools}, {"", kimiTools, kimiTools}, {"my-own", kimiTools, kimiTools},
		{"kimi-k3", `{"role":"system","content":"",` + kimiTools[len(`{"role":"system",`):], kimiTools},
		{"gpt-5.6", kimiTools, ""}, {"deepseek-v4-pro", kimiTools, ""}, {"groq/llama-3.3-70b-versatile", kimiTools, ""}, {"qwen3-max", kimiTools, ""},
		{"gpt-5.6", beside, `{"role":"system","content":"be good"}`},
	} {
		log[1] = test.message
		o := wire.Options{Model: test.model}
		made := wiretest.Render(session.OpenAIChat, storedOf(session.OpenAIChat, log), o)
		got := ""
		for _, body := range made.Bodies {
			if strings.Contains(string(body), `"system"`) {
				got += string(body)
			}
		}
		if got != test.want || len(made.Bodies) < 2 {
			t.Errorf("%s: %s of %s, want %s", test.model, got, test.message, test.want)
		}
		if found := wiretest.Validate(session.OpenAIChat, made.Bodies, o); len(found) > 0 {
			t.Errorf("%s: %+v", test.model, found)
		}
		for _, f := range session.Formats() {
			if other := wiretest.Render(f, storedOf(session.OpenAIChat, log), wire.Options{}); f != session.OpenAIChat {
				if found := wiretest.Validate(f, other.Bodies, wire.Options{}); len(found) > 0 {
					t.Errorf("%s: %+v", f, found)
				}
			}
		}
	}
}
