package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// conversationOf returns a request about n messages of that many lines, from seq 11 on.
func conversationOf(n, lines int) summary.Request {
	r := summary.Request{First: 1, Last: int64(10 + n), Previous: "what was before", Retained: "- port 5433", Retain: true, MaxTokens: 400}
	for i := range n {
		m := said("user", strings.Repeat(fmt.Sprintf("message %d says that all is well with the parser\n", i), lines))
		m.Seq = int64(11 + i)
		r.Messages = append(r.Messages, m)
	}
	return r
}

func tokensOf(r summary.Request) int {
	return summary.DialogueOf(r, strings.Repeat("f", 32)).Tokens()
}

func TestASmallRequestIsNotDivided(t *testing.T) {
	t.Parallel()
	r := conversationOf(3, 2)
	if diff := cmp.Diff([]summary.Request{r}, summary.Chunks(r, tokensOf(r)+20)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChunksHaveTheWholeConversationInOrderAndFit(t *testing.T) {
	t.Parallel()
	for _, style := range []summary.Style{summary.Sections, summary.Codelia, summary.Falai, summary.Cortex} {
		r := conversationOf(40, 12)
		r.Style = style
		r.Messages[7].Parts[0].Text = strings.Repeat("a long line of a result in one message\n", 700) + strings.Repeat("字", 9000)
		r.Tail = []summary.Message{said("user", strings.Repeat("what stays ", 9000))}
		const limit = 3000
		chunks := summary.Chunks(r, limit)
		var whole, got strings.Builder
		for _, m := range r.Messages {
			whole.WriteString(m.Parts[0].Text)
		}
		for i, c := range chunks {
			if n := tokensOf(c); n > limit {
				t.Errorf("%s: part %d has %d tokens", style, i, n)
			}
			if c.Chunk != i+1 || c.Chunks != len(chunks) || c.Last < c.First || i > 0 && c.First != c.Messages[0].Seq ||
				i < len(chunks)-1 && c.Last != c.Messages[len(c.Messages)-1].Seq {
				t.Errorf("%s: part %d is %d of %d, messages %d to %d", style, i, c.Chunk, c.Chunks, c.First, c.Last)
			}
			if (c.Previous != "") != (i == 0) || c.Tail != nil || c.MaxTokens > limit/4 {
				t.Errorf("%s: part %d: previous %q, tail %v, %d tokens", style, i, c.Previous, c.Tail != nil, c.MaxTokens)
			}
			for _, m := range c.Messages {
				got.WriteString(m.Parts[0].Text)
			}
		}
		if got.String() != whole.String() || len(chunks) < 5 || len(chunks) > 20 {
			t.Errorf("%s: %d parts, the same text: %t", style, len(chunks), got.String() == whole.String())
		}
		if chunks[0].First != r.First || chunks[len(chunks)-1].Last != r.Last {
			t.Errorf("%s: from %d to %d", style, chunks[0].First, chunks[len(chunks)-1].Last)
		}
	}
}

func TestAnswersToChunksBecomeOneHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	const limit = 1500
	r := conversationOf(300, 12)
	rounds := 0
	for parts := summary.Chunks(r, limit); len(parts) > 1; parts = summary.Chunks(r, limit) {
		if rounds++; rounds > 10 {
			t.Fatalf("%d parts after %d rounds", len(parts), rounds)
		}
		answers := make([]summary.Answer, len(parts))
		for i, p := range parts { // the longest answers that are allowed
			answers[i] = summary.Answer{Retain: fmt.Sprintf("- fact %d", i%2), Summary: strings.Repeat("words ", p.MaxTokens-20)}
		}
		r = summary.Reduce(r, answers)
	}
	if rounds < 2 || r.Retained != "- fact 0\n- fact 1" || r.Chunks != 0 {
		t.Errorf("after %d rounds: retained %q, %d parts", rounds, r.Retained, r.Chunks)
	}
	if prompt := summary.Prompt(r); !strings.Contains(prompt, "Merge them into one") {
		t.Errorf("prompt\n%s", prompt)
	}
}

func TestThePromptSaysWhatIsRecordedAlready(t *testing.T) {
	t.Parallel()
	r := conversationOf(1, 1)
	for want, change := range map[string]func(*summary.Request){
		"Take over from the summary":          func(*summary.Request) {},
		"do not repeat it":                    func(r *summary.Request) { r.Earlier = []string{"e"} },
		"Merge them into one":                 func(r *summary.Request) { r.Merge = true },
		"part 2 of 5 of the conversation":     func(r *summary.Request) { r.Chunk, r.Chunks = 2, 5 },
		"Write in the language that the conv": func(r *summary.Request) { r.Previous = "" },
	} {
		r := r
		change(&r)
		if prompt := summary.Prompt(r); !strings.Contains(prompt, want) {
			t.Errorf("prompt without %q\n%s", want, prompt)
		}
	}
	r.Earlier = []string{"what stays"}
	if text := summary.Transcript(r, "d1"); !strings.Contains(text, "--- recorded already, and kept beside the answer\n| what stays\n") {
		t.Errorf("transcript\n%s", text)
	}
}
