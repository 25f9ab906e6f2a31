package compact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

func TestTruncate(t *testing.T) {
	t.Parallel()
	checkStage(t, "truncate", map[string]stageCase{
		"the oldest units are dropped until the view is within its target": {
			window: 1000, moves: turns(3), want: []string{"1-7 drop"},
		},
		"protected units stay": {
			change: func(p *policy.Policy) { p.Protect.LastUnits = 7 }, window: 800, moves: turns(3), want: []string{"1-3 drop"},
		},
		"nothing is dropped that is protected, even if the view stays over its target": {
			change: func(p *policy.Policy) { p.Protect.LastMessages = 12 }, window: 800, moves: turns(3),
		},
		"leading system messages stay": {
			window: 1000, moves: append([]move{word("system", "You are careful.")}, turns(3)...), want: []string{"2-8 drop"},
		},
		"a message that alone is over the target does not stay, if it is old": {
			window: 800, moves: []move{asks(filler(6000)), says("done")}, want: []string{"1-1 drop"},
		},
		"with summaries there is nothing to drop": {
			change: func(p *policy.Policy) {
				p.Summarise.Enabled, p.Summarise.MinTokens, p.Summarise.KeepMessages = true, 100_000, 11
			},
			window: 800, moves: turns(3),
		},
	})
}

func TestTheNewestMessageOfTheUserIsNeverDropped(t *testing.T) {
	t.Parallel()
	p := only("truncate", func(p *policy.Policy) { p.Protect.NewestUser = true })
	in := input(t, session.OpenAIChat, p, 400, gives("Read", "a", 1200), asks("all of it"), gives("Read", "b", 1200), gives("Read", "c", 1000))
	plan, made := compacted(t, in)
	var shown []int64
	for _, m := range show(t, in.Format, made) {
		shown = append(shown, m.seq)
	}
	if diff := cmp.Diff([]int64{1, 3, 6, 7}, shown); diff != "" {
		t.Errorf("%v: messages (-want +got):\n%s", outcomes(plan), diff)
	}
}

// TestANoticeGrows: what is dropped next is told of by the same message.
func TestANoticeGrows(t *testing.T) {
	t.Parallel()
	whole := input(t, session.OpenAIChat, only("truncate", nil), 800, turns(6)...)
	first, second := whole, whole
	first.Tail, second.Tail = whole.Tail[:12], whole.Tail[12:]
	_, second.Base = compacted(t, first)
	early, late, atOnce := current(t, first), current(t, second), current(t, whole)
	if want := "[Messages 1 to 7 were left out: 7 messages, in full: get_messages m1-7; a result (r...): read_result." +
		" Its largest results: r3.0-ca7e Read (182 tokens), r7.0-ca7e Read (182 tokens).]"; early[1] != want {
		t.Errorf("got %s, want %s", early[1], want)
	}
	if want := "[Messages 1 to 19 were left out: 19 messages, in full: get_messages m1-19; a result (r...): read_result." +
		" Its largest results: r3.0-ca7e Read (182 tokens), r7.0-ca7e Read (182 tokens), r11.0-ca7e Read (182 tokens)," +
		" r15.0-ca7e Read (182 tokens), r19.0-ca7e Read (182 tokens).]"; late[1] != want {
		t.Errorf("got %s, want %s", late[1], want)
	}
	if diff := cmp.Diff(atOnce, late); diff != "" {
		t.Errorf("step by step it is another view (-at once +step by step):\n%s", diff)
	}
}

// TestASummaryIsNotDropped: where a session has one, what is dropped afterwards is told of behind it.
func TestASummaryIsNotDropped(t *testing.T) {
	t.Parallel()
	whole := input(t, session.OpenAIChat, only("summarise", nil), 800, turns(8)...)
	first, second := whole, whole
	first.Tail, second.Tail, second.Policy = whole.Tail[:16], whole.Tail[16:], only("truncate", nil)
	_, second.Base = compacted(t, first)
	texts := current(t, second)
	if !strings.HasPrefix(texts[1], "[Summary of messages 1 to 13,") || !strings.HasPrefix(texts[14], "[Messages 14 to ") {
		t.Errorf("got %q and %q", texts[1], texts[14])
	}
}
