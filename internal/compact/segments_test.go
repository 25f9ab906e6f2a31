package compact

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// model answers with a text that names the range, and counts how often it was asked of each message.
type model struct {
	asked    []summary.Request
	of       map[int64]int
	answers  map[summary.Digest]summary.Answer
	fails    error
	tokens   int // of an answer, about
	returned []string
}

func (w *model) write(r summary.Request) (summary.Answer, error) {
	w.asked = append(w.asked, r)
	if w.of == nil {
		w.of = map[int64]int{}
	}
	for seq := r.First; seq <= r.Last; seq++ {
		w.of[seq]++
	}
	a := summary.Answer{
		Retain: fmt.Sprintf("- What lasts of %d to %d.", r.First, r.Last), Writer: "large",
		Summary: fmt.Sprintf("What was done from %d to %d. %s", r.First, r.Last, filler(4*w.tokens)), Flags: []string{"odd"},
	}
	if w.fails != nil {
		if w.answers == nil {
			w.answers = map[summary.Digest]summary.Answer{}
		}
		w.answers[r.Digest()] = a
		return summary.Answer{}, w.fails
	}
	w.returned = append(w.returned, strings.TrimSpace(a.Retain+"\n\n"+a.Summary))
	return a, nil
}

// grows compacts a session of n turns of 13 messages as each turn comes, and calls check after each.
func grows(t *testing.T, p policy.Policy, n int, write Write, check func(in Input, plan *Plan, made *Checkpoint)) {
	t.Helper()
	in := input(t, session.OpenAIChat, p, 1400, turns(4*n)...)
	all := in.Tail
	for i := range n {
		in.Tail = after(all[:(i+1)*len(all)/n], in.Base.through())
		plan, made, err := Run(context.Background(), in, write)
		if err != nil {
			t.Fatal(err)
		}
		check(in, plan, made)
		in.Base = made
	}
}

// ranges returns the segments of a plan in short.
func ranges(plan *Plan) (list []string) {
	for _, g := range plan.Segments {
		list = append(list, fmt.Sprintf("%d-%d %s %s %d", g.First, g.Last, g.Writer, g.State, g.Generation))
	}
	return list
}

func segments(n int, change func(*policy.Policy)) policy.Policy {
	return only("summarise", func(p *policy.Policy) {
		p.Summarise.Segments, p.Summarise.MaxTokens, p.Summarise.Retain = n, 100, true
		if change != nil {
			change(p)
		}
	})
}

// textsOf returns the texts of the segments as the state says where they are.
func textsOf(t *testing.T, in Input, made *Checkpoint) (texts []segmentText) {
	t.Helper()
	h, err := readHistory(context.Background(), Input{Format: in.Format, Policy: in.Policy, WindowTokens: in.WindowTokens, Base: made}, len(stages))
	if err != nil {
		t.Fatal(err)
	}
	u, err := newRunState(h).summaries()
	if err != nil {
		t.Fatal(err)
	}
	return u.list
}

// TestASegmentKeepsItsText: of a model every byte stays, of Extract what lasts, and what is about the present stands
// once, in the newest.
func TestASegmentKeepsItsText(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"large", extractName} {
		w, write := &model{}, Write(nil)
		if by == "large" {
			write = w.write
		}
		var before []segmentText
		p := segments(100, func(p *policy.Policy) { p.OnlySmaller = false })
		grows(t, p, 20, write, func(in Input, plan *Plan, made *Checkpoint) {
			now := textsOf(t, in, made)
			if len(now) != len(before)+1 || len(plan.Segments) != len(now) {
				t.Fatalf("%s: %d segments after %d: %v", by, len(now), len(before), ranges(plan))
			}
			for i := range before {
				if now[i].lasting != before[i].lasting || by == "large" && now[i].whole() != before[i].whole() || by == extractName && now[i].now != "" {
					t.Fatalf("%s: segment %d was %q and is %q", by, i, before[i].whole(), now[i].whole())
				}
			}
			newest := &now[len(now)-1]
			if by == "large" && newest.whole() != w.returned[len(w.returned)-1] || by == extractName && newest.now == "" {
				t.Errorf("%s: the newest is %q", by, newest.whole())
			}
			ref := fmt.Sprintf("[Summary of messages %d to %d, written by %s. In full: get_messages m%[1]d-%d]", newest.from, newest.to, by)
			if !strings.Contains(string(made.Body), ref) {
				t.Errorf("no %q in %s", ref, made.Body)
			}
			before = now
		})
		for i := range before[1:] {
			if before[i+1].from != before[i].to+1 {
				t.Errorf("%s: %d to %d, then %d", by, before[i].from, before[i].to, before[i+1].from)
			}
		}
	}
}

// TestSegmentsAreMergedAsABinaryCounterAdds: a message is summarised a logarithmic number of times.
func TestSegmentsAreMergedAsABinaryCounterAdds(t *testing.T) {
	t.Parallel()
	const limit, n = 6, 40
	w := &model{}
	p := segments(limit, func(p *policy.Policy) { p.OnlySmaller = false })
	var shapes [][]int
	grows(t, p, n, w.write, func(_ Input, plan *Plan, _ *Checkpoint) {
		var shape []int
		for i, g := range plan.Segments {
			shape = append(shape, g.Generation)
			if i > 0 && g.First != plan.Segments[i-1].Last+1 {
				t.Fatalf("a gap: %v", ranges(plan))
			}
		}
		if len(shape) > limit {
			t.Fatalf("%d segments: %v", len(shape), ranges(plan))
		}
		shapes = append(shapes, shape)
	})
	want := [][]int{{1, 1, 1, 1, 1, 1}, {2, 1, 1, 1, 1, 1}, {2, 2, 1, 1, 1, 1}, {2, 2, 2, 1, 1, 1}}
	if diff := cmp.Diff(want, shapes[limit-1:limit+3]); diff != "" {
		t.Errorf("generations (-want +got):\n%s", diff)
	}
	for seq, times := range w.of {
		if times > 2+bits.Len(n) {
			t.Errorf("message %d was summarised %d times in %d compactions", seq, times, n)
		}
	}
}

// TestSegmentsHaveARoomTogether: their number alone does not bound them.
func TestSegmentsHaveARoomTogether(t *testing.T) {
	t.Parallel()
	w := &model{tokens: 10}
	p := segments(100, func(p *policy.Policy) { p.Target = 0.4 })
	merges := 0
	grows(t, p, 12, w.write, func(_ Input, plan *Plan, made *Checkpoint) {
		sum := 0
		for _, g := range plan.Segments {
			sum += g.Tokens + headingTokens
		}
		if room := 0.25 * 560; len(plan.Segments) > 2 && float64(sum) > room {
			t.Errorf("%d tokens where there is room for %.0f: %v", sum, room, ranges(plan))
		}
		if last := w.asked[len(w.asked)-1]; last.Merge {
			merges++
		}
	})
	if merges == 0 {
		t.Error("none was merged")
	}
}

// TestTheRequestHasWhatStays: of several segments the writer is shown those that stay; of one the facts apart.
func TestTheRequestHasWhatStays(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]summary.Request{
		1: {Retained: "- What lasts of 1 to 13.", Previous: "What was done from 1 to 13. "},
		3: {Earlier: []string{"- What lasts of 1 to 13.\n\nWhat was done from 1 to 13."}},
	} {
		w := &model{}
		grows(t, segments(n, nil), 2, w.write, func(Input, *Plan, *Checkpoint) {})
		got := w.asked[1]
		shown := summary.Request{Retained: got.Retained, Previous: got.Previous, Earlier: got.Earlier}
		want.Previous = strings.TrimSpace(want.Previous)
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Errorf("%d segments (-want +got):\n%s", n, diff)
		}
	}
}

// TestTheFourthGenerationIsMadeOfTheLog: a model never summarises what models have summarised three times.
func TestTheFourthGenerationIsMadeOfTheLog(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		w := &model{}
		p := segments(n, func(p *policy.Policy) { p.OnlySmaller = false })
		whole, again := input(t, session.OpenAIChat, p, 1400, turns(4*12)...), 0
		older := func(first, last int64) ([]Entry, error) {
			again++
			return whole.Tail[first-1 : last], nil
		}
		write := func(r summary.Request) (summary.Answer, error) {
			if again > 0 && len(r.Messages) > 0 && r.Messages[0].Seq == r.First && r.Retained+r.Previous != "" {
				t.Errorf("%d segments: a request of the log has an earlier summary: %q", n, r.Retained+r.Previous)
			}
			return w.write(r)
		}
		in, all := whole, whole.Tail
		in.Older = older
		for i := range 12 {
			in.Tail = after(all[:(i+1)*len(all)/12], in.Base.through())
			plan, made, err := Run(context.Background(), in, write)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range plan.Segments {
				if g.Generation > mostGenerations {
					t.Errorf("%d segments, compaction %d: %v", n, i, ranges(plan))
				}
			}
			in.Base = made
		}
		if again == 0 {
			t.Errorf("%d segments: the log was never read", n)
		}
	}
}

// TestASummaryThatIsWaitedForIsMadeOfTheLogOnce: each message is in the request once, and the generations begin anew.
func TestASummaryThatIsWaitedForIsMadeOfTheLogOnce(t *testing.T) {
	t.Parallel()
	for _, fallback := range []policy.Fallback{policy.KeepInstead, policy.DropInstead, policy.ExtractInstead} {
		w, read := &model{fails: summary.ErrDue}, 0
		p := segments(1, func(p *policy.Policy) { p.OnlySmaller, p.Summarise.Fallback = false, fallback })
		in := input(t, session.OpenAIChat, p, 1400, turns(4*12)...)
		all := in.Tail
		in.Older = func(first, last int64) ([]Entry, error) {
			read++
			return all[first-1 : last], nil
		}
		var generations []int
		for i := range 12 {
			in.Tail = after(all[:(i+1)*len(all)/12], in.Base.through())
			asked := len(w.asked)
			_, made := again(t, in, w)
			in.Base, in.Tail, in.Answers = made, nil, w.answers
			plan, made := again(t, in, w)
			in.Base, in.Answers = made, nil
			generations = append(generations, plan.Segments[0].Generation)
			seen := map[int64]bool{}
			for _, m := range w.asked[asked].Messages {
				if seen[m.Seq] {
					t.Errorf("%s, compaction %d: message %d is in the request twice", fallback, i, m.Seq)
				}
				seen[m.Seq] = true
			}
		}
		if want := []int{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}; read == 0 || !cmp.Equal(want, generations) {
			t.Errorf("%s: generations %v, want %v; the log was read %d times", fallback, generations, want, read)
		}
	}
}

// TestALogThatCannotBeReadCostsNoSummary: then the generations go on.
func TestALogThatCannotBeReadCostsNoSummary(t *testing.T) {
	t.Parallel()
	w, gone := &model{}, errors.New("the log is gone")
	in := input(t, session.OpenAIChat, segments(1, nil), 1400, turns(4*6)...)
	in.Older = func(int64, int64) ([]Entry, error) { return nil, gone }
	all := in.Tail
	for i := range 6 {
		in.Tail = after(all[:(i+1)*len(all)/6], in.Base.through())
		plan, made, err := Run(context.Background(), in, w.write)
		if err != nil || len(plan.Segments) != 1 || plan.Segments[0].Generation != i+1 {
			t.Fatalf("%v: %v", ranges(plan), err)
		}
		if failed := i >= mostGenerations; failed != strings.Contains(reportOf(plan, "summarise").Error, gone.Error()) {
			t.Errorf("compaction %d reports %q", i, reportOf(plan, "summarise").Error)
		}
		in.Base = made
	}
}

func reportOf(plan *Plan, stage string) StageReport {
	for _, r := range plan.Stages {
		if r.Stage == stage {
			return r
		}
	}
	return StageReport{}
}
