package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
)

// TestWhatWasFoundOfTheSystemsStaysMended shows what an audit of the running product found, by document.
func TestWhatWasFoundOfTheSystemsStaysMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	functions := func(tool string, n int) []string {
		return []string{
			fmt.Sprintf(`{"role":"model","parts":[{"functionCall":{"id":"c%d","name":%q,"args":{"p":%d}}}]}`, n, tool, n),
			fmt.Sprintf(`{"role":"user","parts":[{"functionResponse":{"id":"c%d","name":%q,"response":{"content":%s,"n":5}}}]}`, n, tool, quoted(body("old", 3000))),
		}
	}
	// fed returns the messages of an answer, to be compacted again.
	fed := func(profile string, row systemRow) []string {
		var messages []string
		for _, m := range w.compactsRow(t, profile, row).Messages {
			messages = append(messages, string(m))
		}
		return messages
	}
	whole := systemRow{policy: `"only_smaller":false`, messages: talk(
		exchange("c1", "Read", `{}`, body("old", 1200)), exchange("c2", "Read", `{}`, body("new", 1200)))}
	again := whole
	again.messages = fed("tool-compaction", whole)
	for profile, rows := range map[string]map[string]systemRow{
		"tool-compaction": {
			"a Gemini object as a whole": {format: "gemini", messages: append(append([]string{`{"role":"user","parts":[{"text":"x"}]}`},
				functions("read", 1)...), functions("read", 2)...), gone: []string{"[omitted]"}, want: []string{"Large fields omitted; full content: read_result r3.0-"}},
			"a stub that is fed back is a text": {policy: again.policy, messages: again.messages, want: []string{"callId=c1"}},
		},
		"cortex": {
			"80 characters of a preview": {window: 40_000, policy: `"trim":{"hot_zone_min_tokens":2000,"hot_zone_ratio":0.01,"degradation_span_ratio":0}`,
				messages: talk(exchange("c1", "Bash", `{}`, strings.Repeat("日", 2000)), exchange("c2", "Read", `{}`, body("near", 60_000))),
				want:     []string{`"` + strings.Repeat("日", 80) + `"`}},
			"tiers without summaries": {window: 40_000, policy: `"summarise":{"enabled":false},"trim":{"hot_zone_min_tokens":2000,"hot_zone_ratio":0.01,"degradation_span_ratio":0.1}`,
				messages: talk(func() (all [][]string) {
					for i := range 40 {
						all = append(all, exchange(fmt.Sprintf("c%d", i), "Read", fmt.Sprintf(`{"n":%d}`, i), fmt.Sprintf("first line of %d ", i)+strings.Repeat("word ", 800)))
					}
					return all
				}()...), want: []string{`[Tool result trimmed -- Read: "first line of 0 word`}},
		},
	} {
		checkRows(t, profile, rows)
	}
	if _, err := policy.Parse([]byte(`{"profile":"falai","compactionThreshold":0.7}`)); err != nil {
		t.Error(err)
	}
	for _, contradiction := range []string{
		`{"cap":{"max_tokens":0,"max_ratio":0,"unit_ratio":0}}`, `{"dedupe":{"identity":"fields"}}`,
	} {
		w.must(http.StatusUnprocessableEntity, "POST", "/v1/policy/check", contradiction)
	}
}
