package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// chosen returns the summary of a text of the agent in little room.
func chosen(t *testing.T, maxTokens int, sentences ...string) string {
	t.Helper()
	r := summary.Request{MaxTokens: maxTokens, WordsKept: true}
	r.Messages = numbered(1, said("user", "look at it"), said("assistant", strings.Join(sentences, "\n\n")), filler, said("assistant", "Good."))
	return summary.Extract(r).Summary
}

func TestWhatNoOtherLineNamesComesBeforeWhatIsSaidAgain(t *testing.T) {
	t.Parallel()
	var sentences []string
	for i := range 12 {
		sentences = append(sentences, fmt.Sprintf("The session.State struct is missing SessionState.TokenUsage because of reason %c.", 'a'+i))
	}
	once := "The flush happens in store.Closer now."
	text := chosen(t, 140, append([]string{once}, sentences...)...)
	has(t, text, once, "The session.State struct")
	if n := strings.Count(text, "TokenUsage"); n > 4 {
		t.Errorf("%d lines say the same in\n%s", n, text)
	}
}

func TestAPlanWithItsReasonIsADecision(t *testing.T) {
	t.Parallel()
	has(t, chosen(t, 400, "I'll leave `old_index` in place, since removing it breaks the CLI.", "I'll look at store.go and its tests now.",
		"Let me see why main.go does that."), "I'll leave `old_index` in place", "not I'll look", "not Let me see")
}

func TestShortSentencesComeBeforeLongOnesOfTheSameWorth(t *testing.T) {
	t.Parallel()
	long := "The reader.Open call of the first of the two is held for 4711 ms in the worst of all of the cases here."
	text := chosen(t, 60, "The writer.Open call takes 4712 ms.", "The closer.Open call takes 4713 ms.", long)
	has(t, text, "4712", "4713", "not 4711")
}

func TestWhatTheUserStatesIsKeptWithoutDigitsOrMarks(t *testing.T) {
	t.Parallel()
	r := summary.Request{MaxTokens: 400}
	r.Messages = numbered(1, said("user", "look at it"), filler, said("user", "the old importer is called kestrelReader and belongs to others"), filler)
	has(t, summary.Extract(r).Summary, "## The user's demands\n- [3] the old importer is called kestrelReader")
}

func TestTheGoalAndTheTaskAreCutRatherThanLeftOut(t *testing.T) {
	t.Parallel()
	goal := "Rewrite the importer " + strings.Repeat("so that it reads each of the files once ", 30)
	findings := ""
	for i := range 40 {
		findings += fmt.Sprintf("The reader_%d was replaced by store_%d because it leaks %d handles.\n", i, i, 100+i)
	}
	r := summary.Request{MaxTokens: 300}
	r.Messages = numbered(1, said("user", goal), said("assistant", findings), said("user", "go on with the tests of it"), filler)
	text := summary.Extract(r).Summary
	has(t, text, "## Goal\n- [1] Rewrite the importer so that", "## Task now\n- [3] go on with the tests")
	r = summary.Request{MaxTokens: 300, Previous: text, Messages: numbered(5, said("user", "and now "+goal), filler)}
	has(t, summary.Extract(r).Summary, "## Goal\n- [1] Rewrite the importer so", "## Task now\n- [5] and now Rewrite")
}

func TestTheFirstOfSeveralGoalsStays(t *testing.T) {
	t.Parallel()
	r := summary.Request{Previous: "## Goal\n- [1] build the shop\n- [9] with a cart", Messages: numbered(10, filler)}
	has(t, summary.Extract(r).Summary, "## Goal\n- [1] build the shop\n- [9] with a cart")
}

func TestWhatTheUserWantsIsADemand(t *testing.T) {
	t.Parallel()
	want := []string{
		"i actually want the two to be of one kind", "I'd like the summaries to be at the end", "Ich möchte die Tests zuerst haben",
		"je veux les essais avant le reste", "quiero las pruebas antes de todo",
	}
	r := summary.Request{MaxTokens: 600, Messages: numbered(1, said("user", "look at it"), filler, said("user", strings.Join(want, "\n")), filler)}
	for _, sentence := range want {
		has(t, summary.Extract(r).Summary, "- [3] "+sentence)
	}
}

// statements returns plain statements of the user, each with a name of its own.
func statements() string {
	var texts []string
	for i := range 12 {
		texts = append(texts, fmt.Sprintf("The storeNo%d is at port %d.", i, 5000+i))
	}
	return strings.Join(texts, "\n")
}

func TestWhatTheUserWantsStaysThoughItNamesNothingNew(t *testing.T) {
	t.Parallel()
	r := summary.Request{MaxTokens: 150}
	want := "You must keep kestrelReader.\nNever rename kestrelReader in the api.\n"
	r.Messages = numbered(1, said("user", "look at it"), filler, said("user", want+statements()), filler)
	has(t, summary.Extract(r).Summary, "- [3] You must keep kestrelReader.\n- [3] Never rename kestrelReader in the api.\n")
}

func TestWhatTheUserWantsStaysThoughItIsLong(t *testing.T) {
	t.Parallel()
	r := summary.Request{MaxTokens: 230}
	wish := "kestrelReader should stay as it is " + strings.Repeat("for all of those who call it ", 8)
	r.Messages = numbered(1, said("user", "look at it"), filler, said("user", wish+"\n"+statements()), filler)
	has(t, summary.Extract(r).Summary, "- [3] "+strings.TrimSpace(wish)+"\n") // the task now has its beginning only
}

func TestDataIsNoDemand(t *testing.T) {
	t.Parallel()
	pasted := `{"id":1,"text":"you must never do that.","next":"No fixes applied.\n\nYou must run it.\nAlways."}`
	r := summary.Request{MaxTokens: 600, Messages: numbered(1, said("user", "look at it"), filler, said("user", "Never paste this:\n"+pasted), filler)}
	has(t, summary.Extract(r).Summary, "## The user's demands\n- [3] Never paste this:\n##")
}

func TestANodIsNotQuoted(t *testing.T) {
	t.Parallel()
	r := summary.Request{MaxTokens: 600, Messages: numbered(1, said("user", "look at it"), filler, said("user", "yes, please"), filler, said("user", "ship it to stage-2"), filler)}
	has(t, summary.Extract(r).Summary, "## The user's messages\n- [5] ship it to stage-2", "not [3] yes")
}
