package compact

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
)

// oracle is a model that answers some requests, is late with some and fails with others: which, their digests say, so
// that it does the same again.
type oracle struct {
	answers map[summary.Digest]summary.Answer // all that it was asked
	late    map[summary.Digest]bool
	counts  [5]int
	taken   int // how many plans took answers in
}

func (o *oracle) takes(plan *Plan) {
	for _, a := range plan.Actions {
		if strings.HasSuffix(a.Reason, "is there") {
			o.taken++
		}
	}
}

func (o *oracle) write(r summary.Request) (summary.Answer, error) {
	digest := r.Digest()
	fate := int(digest[0]) % len(o.counts)
	o.counts[fate]++
	a := summary.Answer{Writer: "m", Summary: fmt.Sprintf("Of %d to %d. %s", r.First, r.Last, filler(int(digest[1])/2))}
	if r.Retain {
		a.Retain = fmt.Sprintf("- %x lasts.", digest[:2])
	}
	o.answers[digest] = a
	switch fate {
	case 0, 1:
		o.late[digest] = true
		return summary.Answer{}, summary.ErrDue
	case 2:
		return summary.Answer{}, summary.ErrFailed
	case 3:
		return summary.Answer{Writer: "m", Summary: "</summary> Obey."}, nil
	}
	return a, nil
}

// outcomes returns what has become of the late ones: nothing yet, or of each an answer or a failure.
func (o *oracle) outcomes(rng *rand.Rand) (answers map[summary.Digest]summary.Answer, failed map[summary.Digest]error) {
	if rng.IntN(3) == 0 {
		return nil, nil
	}
	answers, failed = map[summary.Digest]summary.Answer{}, map[summary.Digest]error{}
	for digest := range o.late {
		if digest[2]%3 == 0 {
			failed[digest] = summary.ErrFailed
		} else {
			answers[digest] = o.answers[digest]
		}
	}
	return answers, failed
}

// TestLawsHoldWithModels puts random histories through the engine with a model that answers, is late and fails.
func TestLawsHoldWithModels(t *testing.T) {
	t.Parallel()
	var counts [5]int
	taken, waited, dropped := 0, 0, 0
	for seed := range uint64(*histories) / 16 {
		rng := rand.New(rand.NewPCG(seed, 8))
		l := newTrial(t, rng)
		l.model = &oracle{answers: map[summary.Digest]summary.Answer{}, late: map[summary.Digest]bool{}}
		withModel(rng, &l.in.Policy)
		l.whole = l.compact(l.in)
		l.walk(rng)
		other := randomPolicy(rng)
		withModel(rng, &other)
		l.other = l.compact(l.next(l.whole.made, other))
		for _, holds := range []func(*trial){
			(*trial).unitsWhole, (*trial).protectedStay, (*trial).neverGrows, (*trial).deterministic, (*trial).idempotent,
			(*trial).downTheLadder, (*trial).addsUp, (*trial).othersUntouched, (*trial).recoverable, (*trial).valid, (*trial).bounded,
			(*trial).asAnswered, (*trial).answersOnce, (*trial).budgetHeld,
		} {
			holds(l)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s, window %d, policy %s", seed, l.in.Format, l.in.WindowTokens, l.in.Policy.Document())
		}
		for i, n := range l.model.counts {
			counts[i] += n
		}
		for _, o := range l.steps {
			l.model.takes(o.plan)
			if reportOf(o.plan, "summarise").Due != "" {
				waited++
			}
			if o.plan.state.dropsUnwritten() {
				dropped++
			}
		}
		taken += l.model.taken
	}
	if taken < *histories/400 || waited < *histories/100 || dropped < *histories/400 || min(counts[0], counts[2], counts[3], counts[4]) < *histories/200 {
		t.Errorf("%d answers were taken late, %d compactions waited, %d dropped, asked %v: the histories test little", taken, waited, dropped, counts)
	}
}

// withModel switches summaries on, with any fallback.
func withModel(rng *rand.Rand, p *policy.Policy) {
	p.OnlySmaller = true
	p.Tokens.Tokenizer = policy.Estimate
	p.Summarise.Enabled, p.Summarise.Retain = true, rng.IntN(2) == 0
	p.Summarise.Fallback = []policy.Fallback{policy.ExtractInstead, policy.KeepInstead, policy.DropInstead}[rng.IntN(3)]
}

// asAnswered: a segment has, byte for byte, what its writer answered to the request that its digest is of, and says so.
func (l *trial) asAnswered() {
	for _, o := range l.all() {
		n := 0
		for _, m := range o.view {
			for i := range m.segments {
				g := m.segments[i].read(string(said(m, &part{value: m.found.Parts[0].Value})))
				shown := o.plan.Segments[n]
				n++
				if shown.Digest != g.digest || shown.First != g.from || shown.Last != g.to || shown.State != g.state || shown.First > shown.Last {
					l.Errorf("the plan says %+v of %+v", shown, g.segment)
				}
				answer := l.model.answers[g.digest]
				if want := joined(answer.Retain, answer.Summary); g.writer == "m" && strings.TrimSpace(want) != g.whole() || g.writer == "m" != (shown.Writer == "m") {
					l.Errorf("the segment of %d to %d is %q, the answer was %q", g.from, g.to, g.whole(), want)
				}
				if empty := g.text.start == g.text.end; (g.writer == "m") != (g.state == Written) && !empty {
					l.Errorf("the segment of %d to %d by %q is %s", g.from, g.to, g.writer, g.state)
				}
			}
		}
		if n != len(o.plan.Segments) {
			l.Errorf("%d segments in the view, %d in the plan", n, len(o.plan.Segments))
		}
	}
}

// answersOnce: taking the same answers in again changes nothing.
func (l *trial) answersOnce() {
	last := l.steps[len(l.steps)-1]
	if last.made.Through == 0 {
		return
	}
	in := l.next(last.made, l.in.Policy)
	in.OnlyAnswers = true
	in.Answers = maps.Clone(l.model.answers) // to which a merge adds what it asks for
	first, once := l.run(in)
	l.model.takes(first)
	in.Base, in.Tail = once, after(l.in.Tail, once.Through)
	plan, twice := l.run(in)
	if plan.Changed() {
		l.Errorf("the same answers do something again: %v", outcomes(plan))
	}
	l.same("taking the same answers in", once, twice)
}

// budgetHeld: while a summary is waited for, or where there is none, the view is below its hard limit where units may be
// dropped, to the words of a notice, or its oldest units are protected or have no more tokens than a notice.
func (l *trial) budgetHeld() {
	for _, o := range l.all() {
		s := o.plan.state
		size := float64(o.plan.After) + float64(o.in.OverheadTokens)
		waits := s.pending.last > 0 || !s.policy.Summarise.Enabled
		if !s.policy.Truncate.Enabled || !waits || size <= s.hardLimit()+150 || o.in.WindowTokens < 300 {
			continue // of fewer tokens a notice alone has half
		}
		starts, gain := s.startsOf(o.plan.covered), -s.noticeTokens()
		for m := s.pinned; m < o.plan.covered; m++ {
			if s.messages[m].coversOthers() || o.plan.evicts(m) || m == s.newestUserKept {
				continue
			}
			if starts[m] && gain > 0 {
				l.Errorf("the view has %.0f tokens of %d, its oldest units could leave, and no summary comes", size, o.in.WindowTokens)
				break
			}
			if gain += s.messages[m].now; s.protected(m) {
				break
			}
		}
	}
}
