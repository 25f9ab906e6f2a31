package compact

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// extract writes a summary without a model.
func extract(r summary.Request) (summary.Answer, error) { return summary.Extract(r), nil }

// summariseOldest replaces the oldest units by a summary of them and of the summary before. Unlike the stages before,
// it measures the view as it is now: an earlier summary has already made room.
func summariseOldest(s *runState) {
	if float64(s.size()) <= max(s.target, s.policy.Summarise.Over*s.window) {
		return
	}
	d := s.newEviction(s.pinned, s.summariseUpTo(), Summarise)
	few := min(float64(s.policy.Summarise.MinTokens), s.target/4)
	if s.policy.Protect.Yields && s.overHard() {
		few = 0
	}
	if d == nil || s.policy.OnlySmaller && float64(s.worth(d)) < few {
		return
	}
	request, err := s.request(d)
	if err == nil {
		err = s.summarise(d, request)
	}
	if err != nil {
		s.failed[s.stage] = err
		return
	}
	s.eviction = d
}

// summarise calls the writer and composes the message of the summary.
func (s *runState) summarise(d *eviction, r summary.Request) error {
	answer, err := s.write(r)
	if err != nil {
		return err
	}
	if err := summary.Check(answer, r); err != nil {
		return err
	}
	with := s.recall(d)
	with.written = strings.TrimSpace(answer.Retain + "\n\n" + answer.Summary)
	if err := d.compose(s.in.Format, s.count, &s.words.summary, with); err != nil {
		return err
	}
	if current := d.currentTokens(s.history); s.policy.OnlySmaller && 4*d.now > 3*current {
		return fmt.Errorf("%w: %d tokens instead of %d", errNoGain, d.now, current)
	}
	return nil
}

var errNoGain = errors.New("compact: the summary saves less than a quarter")

// summaryTokens returns the limit of a summary: no more than a quarter of the target if it must be smaller.
func (s *runState) summaryTokens() int {
	if !s.policy.OnlySmaller {
		return s.policy.Summarise.MaxTokens
	}
	return min(s.policy.Summarise.MaxTokens, max(int(s.target/4), 1))
}

// summariseUpTo returns the end of the messages to summarise. It keeps the turns and messages that the policy wants to
// keep, unless the view exceeds the hard limit with them.
func (s *runState) summariseUpTo() int {
	limits := &s.policy.Summarise
	end := s.summarisable(limits.KeepTurns, limits.KeepMessages)
	if float64(s.sizeWithout(end)) > s.policy.Hard*s.window {
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
	if !s.policy.Trim.Enabled || float64(s.sizeWithout(end)) >= s.target/2 {
		return end
	}
	starts, begin := s.startsOf(end), end-1
	for begin > s.pinned && !starts[begin] {
		begin--
	}
	if begin < s.pinned {
		return end
	}
	capped := proposal{action: Cap, head: s.policy.Cap.HeadChars, tail: s.policy.Cap.TailChars}
	chars := s.policy.Trim.BookendMaxChars
	for _, want := range []proposal{capped, {action: Bookend, head: chars, tail: chars, bookend: chars}} {
		left := (want.head+want.tail)/charsPerToken + markerTokens
		large, saved := s.longerThan(left, begin, end)
		if float64(s.sizeWithout(begin)-saved) <= s.target {
			s.shorten(large, want, left)
			return s.enough(begin)
		}
	}
	return end
}

// longerThan returns the results of messages[begin:end] that are whole and have more tokens than limit, and by how many
// in all.
func (s *runState) longerThan(limit, begin, end int) (large []int, saved int64) {
	for m := begin; m < end; m++ {
		for i := s.messages[m].first; i < s.messages[m].last; i++ {
			p := &s.parts[i]
			if p.kind != result || !s.free[i] || s.proposed[i].action != Keep || p.action != Keep || p.tokens <= limit {
				continue
			}
			if left := limit + s.media(i); p.tokens > left {
				large = append(large, i)
				saved += int64(p.tokens - left)
			}
		}
	}
	return large, saved
}

// shorten proposes the same for some results, which leaves that many tokens of each.
func (s *runState) shorten(results []int, want proposal, left int) {
	for _, i := range results {
		want.distance = s.distance(s.parts[i].message)
		s.propose(i, len(s.messages)-1, want, left)
		if want.action == Cap {
			s.proposed[i].capped = left
		} else {
			s.proposed[i].bookend = want.bookend
		}
	}
}

// sizeWithout returns the tokens of the view once a summary replaces the messages before end.
func (s *runState) sizeWithout(end int) int64 {
	size := s.size() + int64(s.summaryRoom())
	for m := s.pinned; m < end; m++ {
		if m != s.newestUserKept {
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
	end := s.pinned + summary.Boundary(turns, keepTurns, keep, int64(s.policy.Protect.MaxTurnRatio*s.target))
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
		if m != s.newestUserKept {
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

// request returns the request to the writer.
func (s *runState) request(d *eviction) (r summary.Request, err error) {
	limits := &s.policy.Summarise
	r = summary.Request{
		First: d.from, Last: d.to, Prompt: limits.Prompt, Directives: limits.Directives, Retain: limits.Retain,
		RetainPrompt: limits.RetainPrompt, RetainDirectives: limits.RetainDirectives, MaxTokens: s.summaryTokens(),
		MayGrow: !s.policy.OnlySmaller, WordsKept: limits.WordsRatio > 0 && limits.NamesRatio > 0,
	}
	shown := s.shownFrom(d)
	for m := range d.evicted() {
		if m < shown && s.silent(m) {
			continue
		}
		message, err := s.decode(m, m >= shown)
		if err != nil {
			return r, err
		}
		if at := &s.messages[m]; at.coversOthers() && at.inner.end > at.inner.start {
			whole := message.Parts[0].Text
			r.Previous = whole[min(at.inner.start, len(whole)):min(at.inner.end, len(whole))]
			continue
		}
		r.Messages = append(r.Messages, message)
	}
	return r, nil
}

// shownParts is how many of the newest calls and results the writer receives: a summary has no room for more.
const shownParts = 512

// shownFrom returns the first message of an eviction whose calls and results the writer receives.
func (s *runState) shownFrom(d *eviction) int {
	shown := 0
	for m := d.end - 1; m >= d.begin; m-- {
		if shown += max(s.messages[m].calls, s.messages[m].last-s.messages[m].first); shown > shownParts {
			return m + 1
		}
	}
	return d.begin
}

// silent reports whether message m only answers calls.
func (s *runState) silent(m int) bool {
	at := &s.messages[m]
	return at.role == other && at.last > at.first && !at.coversOthers()
}

// decode reads message m as the view has it, with its calls and results or without.
func (s *runState) decode(m int, whole bool) (summary.Message, error) {
	at, body := &s.messages[m], s.body(m)
	found, err := s.found(m)
	if err != nil {
		return summary.Message{}, fmt.Errorf("compact: message %d: %w", at.seq, err)
	}
	message := summary.Message{
		Seq: at.seq, Role: found.Role, Summary: at.coversOthers(), Parts: make([]summary.Part, 0, len(found.Parts)),
	}
	next := at.first
	for i := range found.Parts {
		p := &found.Parts[i]
		if !whole && (p.Kind == wire.Call || p.Kind == wire.Result) {
			continue
		}
		read := summary.Part{
			Kind: partKinds[p.Kind], Tool: p.Name, CallID: p.CallID, Text: s.textOf(body, p), Failed: p.IsError,
		}
		for ; next < at.last && s.parts[next].value.Start <= p.Value.Start; next++ {
			if known := &s.parts[next]; known.value == p.Value {
				read.Tool = known.tool
				if known.kind == result || known.kind == arguments && known.action != Keep {
					read.Ref = s.refOf(next).String()
				}
			}
		}
		message.Parts = append(message.Parts, read)
	}
	return message, nil
}

// found returns the facts about message m.
func (h *history) found(m int) (*wire.Facts, error) {
	if m >= h.based && len(h.tail) > 0 {
		return &h.tail[m-h.based], nil
	}
	found, err := wire.Inspect(h.in.Format, h.body(m))
	return &found, err
}

var partKinds = map[wire.Kind]summary.PartKind{
	wire.Text: summary.Text, wire.Call: summary.Call, wire.Result: summary.Result, wire.Reasoning: summary.Reasoning,
}

// textOf returns the text of a part that the writer receives.
func (s *runState) textOf(body []byte, p *wire.Part) string {
	value := p.Value.Of(body)
	if p.Kind == wire.Result {
		if ends := endsOf(value); ends != nil {
			return string(ends)
		}
	}
	switch {
	case len(value) > 0 && value[0] == '"':
		s.text, _ = rawjson.Unquote(s.text[:0], value)
		return string(s.text)
	case p.Kind == wire.Result:
		return string(wire.ResultText(s.in.Format, body, *p).Text)
	}
	return string(value)
}

// endBytes is how much the writer receives of a long result's beginning, and of its end.
const endBytes = 4096

// endsOf decodes the beginning and the end of a long string literal. It returns nil for other values, and for a literal
// that has no place to cut.
func endsOf(literal []byte) []byte {
	if len(literal) <= 4*endBytes || literal[0] != '"' {
		return nil
	}
	first, last := cutNear(literal, endBytes), cutNear(literal, len(literal)-endBytes)
	if first < 0 || last < 0 {
		return nil
	}
	quoted := append(append(append([]byte{}, literal[:first]...), `\n…\n`...), literal[last:]...)
	text, _ := rawjson.Unquote(make([]byte, 0, len(quoted)), quoted)
	return text
}

// cutNear returns a place at or after i where a literal can be cut, between characters and far from any escape, or -1.
func cutNear(literal []byte, i int) int {
	const (
		escape = 6
		search = 512
	)
	for end := i + search; i < min(end, len(literal)-1); i++ {
		if utf8.RuneStart(literal[i]) && bytes.IndexByte(literal[i-escape:i], '\\') < 0 {
			return i
		}
	}
	return -1
}
