package summary_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// decided and stated are statements of an agent whose values must survive.
var (
	decided = []string{
		"We decided to keep the retry limit of worker-%d at %d.", "Decision: the export uses format v%d for tenant-%d.",
		"I chose index idx_orders_%d because the scan took %d ms.", "We go with port %d for the replica of shard %d.",
		"Agreed: shard %d stays read-only until ticket OPS-%d is closed.", "Rollout is limited to %d%% of region eu-%d.",
	}
	stated = []string{
		"The staging database listens on port %d, its shard is %d.", "The build number of the release is %d-%d.",
		"The sandbox's token expires after %d minutes, its id is sb-%d.", "The test account's customer id is C-%d%d.",
		"Deploys go out from branch release-%d by runner r-%d.", "The cache lives at redis://10.0.3.7:%d/%d.",
	}
)

// planted returns a conversation in which some of the agent's texts of the first fifth have one more statement, and the
// statements.
func planted(messages []summary.Message, formats []string) ([]summary.Message, []string) {
	random := rand.New(rand.NewPCG(1, uint64(len(messages))))
	messages = append([]summary.Message(nil), messages...)
	var facts []string
	for i := 0; i < len(messages)/5 && len(facts) < 2*len(formats); i++ {
		for j, p := range messages[i].Parts {
			if p.Kind != summary.Text || messages[i].Role != "assistant" {
				continue
			}
			fact := fmt.Sprintf(formats[len(facts)%len(formats)], 1_000+random.IntN(50_000), 1_000+random.IntN(50_000))
			facts = append(facts, fact)
			messages[i].Parts = append([]summary.Part(nil), messages[i].Parts...)
			messages[i].Parts[j].Text += "\n\n" + fact
			break
		}
	}
	return messages, facts
}

// generations summarises a conversation in that number of steps, each with the summary before, and returns the summaries.
func generations(messages []summary.Message, steps, maxTokens int) (texts []string) {
	text := ""
	for i := range steps {
		from, to := i*len(messages)/steps, (i+1)*len(messages)/steps
		r := summary.Request{Previous: text, Messages: messages[from:to], MaxTokens: maxTokens, WordsKept: true}
		text = summary.Extract(r).Summary
		texts = append(texts, text)
	}
	return texts
}

func TestDecisionsAndPlainStatementsSurviveFiveCompactions(t *testing.T) {
	t.Parallel()
	const steps, maxTokens = 6, 1_500
	for name, formats := range map[string][]string{"decided": decided, "stated": stated} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, all := 0, 0
			for _, messages := range recorded(t) {
				messages, facts := planted(messages, formats)
				text := generations(messages, steps, maxTokens)[steps-1]
				for _, fact := range facts {
					if strings.Contains(text, fact) {
						kept++
					}
				}
				all += len(facts)
			}
			if all == 0 || 5*kept < 4*all {
				t.Errorf("%d of %d survive, want 80 %%", kept, all)
			}
		})
	}
}

// stable are the headings under which a line, once written, never changes.
var stable = []string{"## Decisions and findings", "## Tasks before", "## Calls"}

// linesOf returns the lines of those sections.
func linesOf(text string) (lines []string) {
	heading := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "## ") {
			heading = line
			continue
		}
		for _, h := range stable {
			if h == heading {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func TestTwentyGenerationsOnlyAddAndDropLines(t *testing.T) {
	t.Parallel()
	const steps, maxTokens = 20, 1_500
	for id, messages := range recorded(t) {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			before := map[string]bool{}
			for i, text := range generations(messages, steps, maxTokens) {
				now := map[string]bool{}
				for _, line := range linesOf(text) {
					var seq int64
					if now[line] {
						t.Errorf("generation %d: %q stands there twice", i, line)
					}
					now[line] = true
					_, err := fmt.Sscanf(line, "- [%d]", &seq)
					if first := messages[i*len(messages)/steps].Seq; !before[line] && i > 0 && (err != nil || seq < taskOf(text, first)) {
						t.Errorf("generation %d: %q is no line of the generation before, nor new", i, line)
					}
				}
				before = now
			}
		})
	}
}

// taskOf returns 0 if the text has tasks that ended, whose lines have the seqs of their beginnings, else first.
func taskOf(text string, first int64) int64 {
	if strings.Contains(text, "## Tasks before") {
		return 0
	}
	return first
}

func TestASummaryThatIsSummarisedAgainIsTheSame(t *testing.T) {
	t.Parallel()
	for id, messages := range recorded(t) {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			text := generations(messages, 3, 2_000)[2]
			seq := messages[len(messages)-1].Seq + 1
			r := summary.Request{Previous: text, MaxTokens: 2_400, WordsKept: true}
			r.Messages = []summary.Message{{Seq: seq, Role: "tool", Parts: []summary.Part{{Kind: summary.Reasoning, Text: strings.Repeat("so much ", 400)}}}}
			again := summary.Extract(r).Summary
			if diff := cmp.Diff(strings.Split(text, "\n"), strings.Split(again, "\n")); diff != "" {
				t.Errorf("summarised again (-before +after):\n%s", diff)
			}
		})
	}
}
