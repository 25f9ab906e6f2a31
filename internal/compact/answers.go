package compact

import (
	"errors"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
)

// pending is a summary that a model was asked for while its messages stay in the view. The state remembers it, so that
// the answer is taken for these messages and no others, whatever has come since.
type pending struct {
	first, last int64
	shown       int   // how many messages of the view they are: of the last one, later steps may not be among them
	kept        int64 // the message of the user among them that the answer is not of, 0 for none
	digest      summary.Digest
}

var (
	errNoRoom = errors.New("compact: the model's summary is there, but the view has no room for it")
	errLeft   = errors.New("compact: the model's summary is there, but its messages have left the view")
)

// dueError reports that a model must summarise these messages first.
type dueError struct{ first, last int64 }

// Error names the messages.
func (e *dueError) Error() string {
	return fmt.Sprintf("the summary of messages %d to %d is due", e.first, e.last)
}

// Is reports whether target is summary.ErrDue.
func (e *dueError) Is(target error) bool { return target == summary.ErrDue }

// waitsForModel reports whether messages stay in the view until a model has summarised them.
func (s *runState) waitsForModel() bool {
	return s.write != nil && s.policy.Summarise.Fallback != policy.ExtractInstead
}

// answered reports whether there is an answer, or none any more, for what the base waits for, or other pins for it to
// carry.
func (s *runState) answered() bool {
	if s.pinsMoved() || s.in.hasOutcome(s.pending.digest) {
		return true
	}
	for m := range s.messages[:s.based] {
		for i := range s.messages[m].segments {
			if g := &s.messages[m].segments[i]; g.state != Written && s.in.hasOutcome(g.digest) {
				return true
			}
		}
	}
	return false
}

// waitsFor reports whether the answer to a request, or a failure, is there or will come.
func (in *Input) waitsFor(asked summary.Digest) bool {
	return in.Asked == nil || in.Asked[asked] || in.hasOutcome(asked)
}

func (in *Input) hasOutcome(of summary.Digest) bool {
	_, answered := in.Answers[of]
	return of != summary.Digest{} && (answered || in.Failed[of] != nil)
}

// takeAnswers puts what models have answered in the place of what Extract wrote until then.
func (u *summaries) takeAnswers() {
	for i := range u.list {
		p := &u.list[i]
		if p.state == Written {
			continue
		}
		if answer, ok := u.in.Answers[p.digest]; ok {
			u.take(p, answer)
		} else if err := u.in.Failed[p.digest]; err != nil {
			u.fail(p, err)
		}
	}
}

// take puts an answer in the place of a segment if it fits.
func (u *summaries) take(p *segmentText, a summary.Answer) {
	if err := summary.Check(a, summary.Request{MayGrow: true}); err != nil {
		u.fail(p, err)
		return
	}
	next := *p
	u.fill(&next, a)
	more := int64(next.tokens - p.tokens)
	if more > 0 && (next.tokens > u.segmentTokens() && !u.emulates() || float64(u.size()+u.grown+more) > u.allowed()) {
		u.fail(p, errNoRoom)
		return
	}
	next.state = Written
	*p = next
	u.grown += more
	there := fmt.Sprintf("the summary of messages %d to %d by %s is there", p.from, p.to, label(p.writer))
	u.taken = append(u.taken, there)
}

// allowed returns how many tokens a view may have with an answer that is larger than what Extract wrote: as long as no
// compaction becomes due by it. The room for it was foreseen when the messages left.
func (u *summaries) allowed() float64 {
	trigger := u.policy.Trigger * u.window
	if u.policy.TriggerTokens > 0 {
		trigger = float64(u.policy.TriggerTokens)
	}
	return max(trigger, u.target)
}

// fail records that a segment stays what Extract wrote.
func (u *summaries) fail(p *segmentText, err error) {
	if p.state == Due {
		u.noted = true
		u.failure = errors.Join(u.failure, err)
	}
	p.state = Failed
	own := u.messages[u.at].segments
	own[slices.IndexFunc(own, func(g segment) bool { return g.digest == p.digest })].state = Failed
}

// rewrite replaces the message of the summaries by one with the answers that were taken, unless that were larger than
// what it is of.
func (u *summaries) rewrite() error {
	before := u.messages[u.at].segments
	d := &eviction{
		begin: u.at, end: u.at + 1, kept: -1, action: Summarise, stage: u.stage, coverage: u.messages[u.at].coverage,
		taken: u.taken,
	}
	err := u.put(d, u.list)
	replaced := 0
	for i := range u.list {
		replaced += u.list[i].replaced
	}
	more := u.grown
	if !u.pinsMoved() { // the user's words, too, may have become more
		more = int64(d.now - u.messages[u.at].now)
	}
	if err == nil && more > 0 && u.policy.OnlySmaller &&
		(d.now > replaced || float64(u.size()+more) > u.allowed()) {
		err = errNoRoom
	}
	if err == nil {
		return nil
	}
	u.eviction = nil
	for i := range before {
		if u.list[i].state == Written && before[i].state != Written {
			u.noted = u.noted || before[i].state == Due
			before[i].state = Failed
		}
	}
	return err
}

// settle applies the outcome of the request for the messages of d, which are still in the view.
func (u *summaries) settle(d *eviction) error {
	asked := u.pending
	answer, answered := u.in.Answers[asked.digest]
	failed := u.in.Failed[asked.digest]
	if !answered && failed == nil {
		return &dueError{asked.first, asked.last}
	}
	u.pending = pending{}
	if !answered {
		return failed
	}
	next := u.following(d)
	if !u.segmented() {
		u.again(&next, u.covered()) // the request was made of the log, too, if it had to be
	}
	next.digest = asked.digest
	u.fill(&next, answer)
	limits := u.asked()
	limits.MayGrow = true
	if err := summary.Check(answer, limits); err != nil {
		return err
	}
	return u.follow(d, next)
}

// evictionOf returns the eviction of the messages that a model was asked to summarise; nil if they are no longer what
// they were.
func (u *summaries) evictionOf(asked pending) *eviction {
	kept, end := -1, u.pinned+asked.shown
	if starts := u.startsOf(u.through()); end > len(starts) || end < len(starts) && !starts[end] {
		return nil
	}
	for m := u.pinned; m < end; m++ {
		if u.messages[m].seq == asked.kept && !u.messages[m].coversOthers() {
			kept = m
		}
	}
	d := u.evictionKeeping(u.pinned, end, kept, Summarise)
	if d == nil || d.from != asked.first || d.to != asked.last {
		return nil
	}
	return d
}
