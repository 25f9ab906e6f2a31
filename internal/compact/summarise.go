package compact

import (
	"errors"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// summariseOver lets answers be taken in whatever the size of the view.
func summariseOver(s *runState) float64 {
	if s.answered() {
		return -1
	}
	return s.target
}

// summariseOldest takes in what models have answered. Then it replaces the oldest units by a summary of them. Unlike
// the stages before, it measures the view as it is now: an earlier summary has already made room.
func summariseOldest(s *runState) {
	u, err := s.summaries()
	if err == nil {
		u.takeAnswers()
		s.unwritten = u.extend()
		if !errors.Is(s.unwritten, summary.ErrDue) {
			err = s.unwritten
		}
		if s.eviction == nil && u.at >= 0 && s.pinsMoved() {
			u.taken = append(u.taken, "other texts are pinned")
		}
		if s.eviction == nil && len(u.taken) > 0 {
			err = errors.Join(err, u.rewrite())
		}
	}
	if err = errors.Join(s.failure, err); err != nil {
		s.failed[s.stage] = err
	}
}

// extend replaces the oldest units by a summary of them, and says why not if it should and does not.
func (u *summaries) extend() error {
	if u.pending.last > 0 && u.waitsForModel() && u.in.waitsFor(u.pending.digest) {
		if d := u.evictionOf(u.pending); d != nil {
			return u.settle(d)
		}
		if u.in.hasOutcome(u.pending.digest) {
			u.failure = errors.Join(u.failure, errLeft)
		}
	}
	u.pending = pending{}
	limits := &u.policy.Summarise
	if u.policy.Protect.Yields {
		u.assumeCurrent()
	}
	if u.in.OnlyAnswers || float64(u.size()+u.grown) <= max(u.target, limits.Over*u.window) {
		return nil
	}
	d := u.newEviction(u.pinned, u.summariseUpTo(), Summarise)
	var made *summaries
	if !limits.All && u.policy.Protect.Yields {
		d, made = u.fit(d)
	}
	few := min(float64(limits.MinTokens), (u.target-u.fixed)/4)
	if u.policy.Protect.Yields && u.overHard() {
		few = 0
	}
	if d == nil || u.policy.OnlySmaller && float64(u.worth(d)) < few {
		return nil
	}
	if made != nil {
		u.eviction, u.memory = made.eviction, made.memory
		return nil
	}
	return u.summarise(d)
}

// summarise writes, or asks a model for, the summary of the messages of an eviction.
func (u *summaries) summarise(d *eviction) error {
	next := u.following(d)
	r, err := u.request(d, &next)
	if err != nil {
		return err
	}
	err = u.ask(&next, r, false)
	if errors.Is(err, summary.ErrDue) {
		u.pending = pending{first: d.from, last: d.to, shown: d.end - u.pinned, digest: next.digest}
		if k := u.newestUserKept; k >= u.pinned && k < d.end {
			u.pending.kept = u.messages[k].seq
		}
		return &dueError{d.from, d.to}
	}
	if err != nil {
		return err
	}
	return u.follow(d, next)
}

// following returns the segment of an eviction, without its text: of the evicted messages of the log or, if there is to
// be one summary, of all that it is of.
func (u *summaries) following(d *eviction) segmentText {
	next := segmentText{segment: segment{
		from: d.from, to: d.to, messages: d.messages, replaced: u.worth(d), state: Written, generation: 1,
	}}
	if !u.segmented() {
		for i := range u.list {
			next.generation = max(next.generation, u.list[i].generation+1)
			next.replaced += u.list[i].replaced
		}
		return next
	}
	var since coverage
	for m := range d.evicted() {
		if at := &u.messages[m]; len(at.segments) == 0 {
			since.cover(at)
		}
	}
	next.from, next.to = since.from, since.to
	next.messages = since.messages
	if n := len(u.list); n > 0 && u.list[n-1].to < next.to {
		next.from = max(next.from, u.list[n-1].to+1)
	}
	return next
}

// request returns the request for the segment of an eviction.
func (u *summaries) request(d *eviction, next *segmentText) (r summary.Request, err error) {
	r = u.asked()
	r.First, r.Last = next.from, next.to
	var before []summary.Message
	if u.segmented() {
		var staying []segmentText
		staying, r.Previous = u.kept()
		for i := range staying {
			if text := staying[i].whole(); text != "" {
				r.Earlier = append(r.Earlier, text)
			}
		}
	} else if before = u.again(next, u.covered()); before == nil {
		for i := range u.list {
			r.Retained = joined(r.Retained, u.list[i].lasting)
			r.Previous = joined(r.Previous, u.list[i].now)
		}
	}
	if r.Messages, err = u.transcript(d); err != nil {
		return r, err
	}
	if before != nil { // which has a message of the user, too, that stayed behind the summary
		covered := u.covered()
		r.Messages = slices.DeleteFunc(r.Messages, func(m summary.Message) bool { return m.Seq <= covered })
	}
	r.Messages = append(before, r.Messages...)
	return r, u.addContext(&r, d)
}

// covered returns the last message that the summaries are of, 0 for none.
func (u *summaries) covered() int64 {
	if len(u.list) == 0 {
		return 0
	}
	return u.list[len(u.list)-1].to
}

// ask has a segment written. Where no model has answered, Extract writes it, if the policy or always wants that; else
// the error says why there is none.
func (u *summaries) ask(p *segmentText, r summary.Request, always bool) error {
	if u.write == nil {
		return u.extract(p, r)
	}
	answer, err := u.write(r)
	if err == nil {
		err = summary.Check(answer, r)
	}
	if err != nil || answer.Writer != "" {
		p.digest = r.Digest()
	}
	if err == nil {
		u.fill(p, answer)
		return nil
	}
	if u.waitsForModel() && !always {
		return err
	}
	if p.state = Failed; errors.Is(err, summary.ErrDue) {
		p.state = Due
	} else {
		u.failure = errors.Join(u.failure, err)
	}
	return u.extract(p, r)
}

// extract writes a segment without a model. With several segments, each keeps lasting facts separate from the present
// state, so that only the newest segment shows a present state.
func (u *summaries) extract(p *segmentText, r summary.Request) error {
	r.Retain = r.Retain || u.segmented()
	answer := u.reader.Extract(r)
	if err := summary.Check(answer, r); err != nil {
		return err
	}
	u.fill(p, answer)
	return nil
}

// follow puts a segment behind those that stay.
func (u *summaries) follow(d *eviction, next segmentText) error {
	if !u.segmented() {
		return u.put(d, []segmentText{next})
	}
	staying, _ := u.kept()
	return u.put(d, u.merged(append(staying, next)))
}

// put composes the message of summaries in the place of what is evicted.
func (u *summaries) put(d *eviction, list []segmentText) error {
	u.pinTo(d)
	said := make([]string, len(list))
	for i := range list {
		said[i] = list[i].whole()
	}
	with := u.recall(d, joined(said...))
	with.texts, with.headed = list, u.segmented()
	if err := d.compose(u.in.Format, u.count, &u.words.summary, with); err != nil {
		return err
	}
	if d.taken == nil && u.policy.OnlySmaller {
		if err := u.gains(d); err != nil {
			return err
		}
	}
	u.eviction = d
	return nil
}

// gains returns an error if a summary saves less than a quarter of what it replaces: of several segments, of what the
// new one is of.
func (u *summaries) gains(d *eviction) error {
	now, current := d.now, d.currentTokens(u.history)
	if u.segmented() && u.at >= 0 {
		now -= u.messages[u.at].now
		current -= u.messages[u.at].now
	}
	if 4*now > 3*current {
		return fmt.Errorf("%w: %d tokens instead of %d", errNoGain, now, current)
	}
	return nil
}

var errNoGain = errors.New("compact: the summary saves less than a quarter")

// summariseUpTo returns the end of the messages to summarise. It keeps the turns and messages that the policy wants to
// keep, unless the view exceeds the hard limit with them.
func (s *runState) summariseUpTo() int {
	limits := &s.policy.Summarise
	end := s.summarisable(limits.KeepTurns, limits.KeepMessages)
	if float64(s.sizeWithout(end)) > s.hardLimit() {
		end = s.summarisable(0, 0)
	}
	if !limits.All {
		end = s.shortenInstead(s.enough(end))
	}
	return end
}

// shortenInstead returns the end of the messages to summarise. If a summary of the last unit before end, too, would
// leave the view less than half of its target, and shorter results of that unit are enough for the view to be within
// its target, they are proposed instead: cut as oversized ones are or, if that is not enough, to bookends. Then as few
// of the units before as are still needed are summarised.
func (s *runState) shortenInstead(end int) int {
	if end <= s.pinned || !s.policy.Trim.Enabled || float64(s.sizeWithout(end)) >= s.target/2 {
		return end
	}
	begin := s.lastUnitBefore(end)
	capped := proposal{action: Cap, head: s.policy.Cap.HeadChars, tail: s.policy.Cap.TailChars}
	chars := s.policy.Trim.BookendMaxChars
	for _, want := range []proposal{capped, {action: Bookend, head: chars, tail: chars, bookend: chars}} {
		large, saved := s.shorter(want, begin, end)
		if float64(s.sizeWithout(begin)-saved) <= s.target {
			s.shorten(large, want)
			return s.enough(begin)
		}
	}
	return end
}

// shortened is a result that a cut shortens, with the tokens that the cut leaves of it.
type shortened struct{ part, left int }

// shorter returns the results of messages[begin:end] that are whole and that a cut makes shorter, and by how many
// tokens in all. It makes the cuts: not every result can be cut, and of some texts each character is a token.
func (s *runState) shorter(want proposal, begin, end int) (large []shortened, saved int64) {
	limit := (want.head+want.tail)/charsPerToken + markerTokens
	for m := begin; m < end; m++ {
		for i := s.messages[m].first; i < s.messages[m].last; i++ {
			p := &s.parts[i]
			if p.kind != result || !s.free[i] || s.proposed[i].action != Keep || p.action != Keep || p.tokens <= limit {
				continue
			}
			if left := s.leftBy(want, i, limit); left < p.tokens {
				large = append(large, shortened{i, left})
				saved += int64(p.tokens - left)
			}
		}
	}
	return large, saved
}

// leftBy returns how many tokens a cut leaves of result i, which is whole: all, if it cannot be made.
func (s *runState) leftBy(want proposal, i, about int) int {
	if want.action == Cap {
		want.capped = about
	}
	before := s.proposed[i]
	s.proposed[i] = want
	made := s.makeDraft(i)
	s.proposed[i] = before
	if made.action == Keep {
		return s.parts[i].tokens
	}
	return made.tokens
}

// shorten proposes a cut of results.
func (s *runState) shorten(results []shortened, want proposal) {
	for _, of := range results {
		want.distance = s.distance(s.parts[of.part].message)
		s.propose(of.part, len(s.messages)-1, want, of.left)
		if want.action == Cap {
			s.proposed[of.part].capped = of.left
		} else {
			s.proposed[of.part].bookend = want.bookend
		}
	}
}

// sizeWithout returns the tokens of the view once a summary replaces the messages before end.
func (s *runState) sizeWithout(end int) int64 {
	size := s.size() + int64(s.summaryRoom())
	for m := s.pinned; m < end; m++ {
		if !s.isKept(m) {
			size -= int64(s.foreseen(m))
		}
	}
	return size
}

// summarisable returns the end of the messages that a summary may replace if the newest turns and messages are kept:
// the end of a unit, before what is protected.
func (s *runState) summarisable(keepTurns, keepMessages int) int {
	covered := s.through()
	turns := make([]summary.Turn, 0, covered)
	starts := s.startsOf(covered)
	for m := min(s.pinned, covered); m < covered; m++ {
		at := &s.messages[m]
		turns = append(turns, summary.Turn{User: at.role == user, UnitStart: starts[m], Tokens: at.now})
	}
	// The messages after the covered ones are kept, too.
	keep := max(0, keepMessages-(len(s.messages)-covered))
	largest := int64(s.policy.Protect.MaxTurnRatio * s.policy.TargetOf(s.window))
	end := s.pinned + summary.Boundary(turns, keepTurns, keep, largest)
	for m := s.pinned; m < end; m++ {
		if s.protected(m) && m != s.newestUserKept {
			end = m
		}
	}
	for end < covered && end > s.pinned && !starts[end] {
		end--
	}
	return end
}

// enough returns the end of the fewest of the oldest units whose summary brings the view to its target, or end if even
// all of them do not.
func (s *runState) enough(end int) int {
	starts := s.startsOf(end)
	size := s.size() + int64(s.summaryRoom())
	for m := s.pinned; m < end; m++ {
		if starts[m] && float64(size) <= s.target {
			return m
		}
		if !s.isKept(m) {
			size -= int64(s.foreseen(m))
		}
	}
	return end
}

// foreseen returns about how many tokens message m has once all proposals so far are applied.
func (s *runState) foreseen(m int) int {
	at := &s.messages[m]
	left := at.tokens
	for i := at.first; i < at.last; i++ {
		if steps := s.steps[i]; len(steps) > 0 {
			left -= max(0, s.parts[i].tokens-steps[len(steps)-1].tokens)
		}
	}
	return left
}

// lastUnitBefore returns where the last unit before a message begins, of those that may leave.
func (s *runState) lastUnitBefore(end int) int {
	starts := s.starts(end)
	if len(starts) == 0 {
		return s.pinned
	}
	return max(starts[len(starts)-1], s.pinned)
}

// startsOf reports for each of the first n messages whether a unit begins with it.
func (h *history) startsOf(n int) []bool {
	starts := make([]bool, n)
	for _, m := range h.starts(n) {
		starts[m] = true
	}
	return starts
}

// worth returns how many tokens of the log a summary would replace.
func (s *runState) worth(d *eviction) (tokens int) {
	for m := range d.evicted() {
		if !s.messages[m].coversOthers() {
			tokens += s.messages[m].now
		}
	}
	return tokens
}
