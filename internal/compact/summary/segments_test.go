package summary_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// segments summarises a conversation in that number of steps. What lasts of each range stays, and what is about the
// present replaces that of the range before.
func segments(messages []summary.Message, steps, maxTokens int) (lasting []string, present string) {
	for i := range steps {
		from, to := i*len(messages)/steps, (i+1)*len(messages)/steps
		a := summary.Extract(summary.Request{
			Earlier: lasting, Previous: present, Messages: messages[from:to], MaxTokens: maxTokens, WordsKept: true, Retain: true,
		})
		lasting, present = append(slices.Clone(lasting), a.Retain), a.Summary
	}
	return lasting, present
}

// entriesOf returns the lines of a summary that are entries, each once.
func entriesOf(text string) map[string]bool {
	entries := map[string]bool{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "- ") {
			entries[strings.TrimSpace(line)] = true
		}
	}
	return entries
}

// TestSegmentsHaveTogetherWhatOneSummaryHas compares segments with one summary that is written again at each step, where
// there is room for all.
func TestSegmentsHaveTogetherWhatOneSummaryHas(t *testing.T) {
	t.Parallel()
	const steps = 6
	for id, messages := range recorded(t) {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			if len(messages) < 10*steps {
				return
			}
			var one summary.Answer
			for i := range steps {
				from, to := i*len(messages)/steps, (i+1)*len(messages)/steps
				one = summary.Extract(summary.Request{
					Retained: one.Retain, Previous: one.Summary, Messages: messages[from:to], WordsKept: true, Retain: true,
				})
			}
			lasting, present := segments(messages, steps, 0)
			if diff := cmp.Diff(strings.Split(one.Summary, "\n"), strings.Split(present, "\n")); diff != "" {
				t.Errorf("the present (-of one summary +of segments):\n%s", diff)
			}
			got := entriesOf(strings.Join(lasting, "\n"))
			if diff := cmp.Diff(entriesOf(one.Retain), got); diff != "" {
				t.Errorf("what lasts (-of one summary +of segments):\n%s", diff)
			}
		})
	}
}

func TestASegmentRepeatsNothingThatStaysInTheView(t *testing.T) {
	t.Parallel()
	for id, messages := range recorded(t) {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			lasting, _ := segments(messages, 20, 400)
			seen := map[string]bool{}
			for i, text := range lasting {
				for entry := range entriesOf(text) {
					if seen[entry] {
						t.Errorf("segment %d has %s again", i, entry)
					}
					seen[entry] = true
				}
			}
		})
	}
}

func TestThePresentCarriesOverFromSegmentToSegment(t *testing.T) {
	t.Parallel()
	first := []summary.Message{
		said("user", "raise the limit"), said("assistant", "We keep the limit of 300 because the server has no more."),
		calls("Edit", "c1", `{"file_path":"/w/a.go","old_string":"x","new_string":"limit = 300"}`), answers("c1", "ok"),
		calls("Bash", "c2", `{"command":"go test ./a"}`), failed("c2", "a_test.go:3: error: one"),
	}
	second := []summary.Message{
		said("assistant", "We keep the limit of 300 because the server has no more. The port of the replica is 5433."), filler,
		calls("Bash", "c3", `{"command":"make docs"}`), answers("c3", "wrote 3 pages"),
	}
	r := summary.Request{MaxTokens: 2_000, WordsKept: true, Retain: true, Messages: numbered(1, append(first, filler)...)}
	before := summary.Extract(r)
	has(t, before.Retain, "- [2] We keep the limit of 300", "not ## Files in flight", "not ## Errors")
	r.Earlier, r.Previous, r.Messages = []string{before.Retain}, before.Summary, numbered(8, second...)
	now := summary.Extract(r)
	has(t, now.Retain, "not limit of 300", "- [8] The port of the replica is 5433.")
	has(t, now.Summary, "- [4] /w/a.go -- edited: limit = 300", "- [6] Bash: go test ./a ⇒ a_test.go:3: error: one",
		"## Task now\n- [1] raise the limit", "make docs ⇒ wrote 3 pages")
	r.Earlier, r.Previous = append(r.Earlier, now.Retain), now.Summary
	r.Messages = numbered(12, calls("Bash", "c4", `{"command":"go test ./..."}`), answers("c4", "ok"),
		calls("Bash", "c5", `{"command":"git commit -am limit"}`), answers("c5", "[main 1a2b3c4] limit"), filler)
	last := summary.Extract(r)
	has(t, last.Retain, "- [15] commit: [main 1a2b3c4] limit (a.go)", "not 5433")
	has(t, last.Summary, "not ## Files in flight", "not ## Errors, not solved", fmt.Sprintf("solved at %d", 13))
}
