package compact

import (
	"bytes"
	"crypto/sha256"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// settle carries out what the stages propose, where it moves a part down the ladder and makes the view smaller. What
// stands in messages that leave as a whole is not looked at.
func settle(s *runState, p *Plan) {
	p.history, p.covered = s.history, s.through()
	for m := p.covered; m < len(s.messages); m++ { // what is not covered stays as it stands
		s.messages[m].now = s.viewTokens(m)
	}
	for m := range s.messages {
		p.Before += int64(s.messages[m].now)
		p.ViewBefore += int64(s.viewTokens(m))
	}
	p.After = p.Before
	for m := range s.messages[:p.covered] {
		p.Through = max(p.Through, s.messages[m].through())
	}
	p.evict(s)
	for i := range s.parts {
		if m := s.parts[i].message; m < p.covered && !p.evicts(m) && s.proposed[i].lowers(&s.parts[i]) {
			p.apply(s, i)
		}
	}
	p.Kept = p.keptTokens()
}

// standingTokens are those of what stands in the view of message m, where results may have been capped at insertion.
func (h *history) viewTokens(m int) int {
	if m >= h.based {
		if seen := h.in.Tail[m-h.based].ViewTokens; seen > 0 {
			return seen
		}
	}
	return h.messages[m].now
}

// below reports whether the proposal leaves less of a part than what stands in the view.
func (w *proposal) lowers(p *part) bool {
	return w.action.rung() > p.action.rung() || w.action == p.action && (w.head < p.head || w.tail < p.tail)
}

// carryOut replaces part i if that saves bytes and tokens.
func (p *Plan) apply(s *runState, i int) {
	at := &s.parts[i]
	made := s.makeDraft(i)
	if made.action == Keep {
		return
	}
	start := len(p.text)
	before, after := "", ""
	if at.kind == arguments {
		p.text = s.appendArguments(p.text, at, made.text)
	} else {
		before, after = wrapping(s.in.Format, at.value.Of(s.body(at.message)))
		p.text = append(append(append(p.text, before...), made.quoted...), after...)
	}
	// Below Keep tokens may stay the same: two bookends can differ by less than a token.
	if now := made.tokens; len(p.text)-start >= at.value.End-at.value.Start || now > at.now || now == at.now && at.action == Keep {
		p.text = p.text[:start]
		return
	}
	if at.action == Keep {
		p.Results = append(p.Results, s.resultOf(i, &made.replacement))
	}
	was := at.now
	at.action, at.now, at.replacement = made.action, made.tokens, made.replacement
	s.messages[at.message].now += made.tokens - was
	p.edits = append(p.edits, edit{part: i, start: start, end: len(p.text), lead: len(before), trail: len(after)})
	p.record(s, i, was)
}

// wrapping is what a format wants around a text in the place of a result. Gemini takes objects only; where one had a
// single text, that is the value, and the object stays.
func wrapping(f session.Format, value []byte) (before, after string) {
	if f == session.Gemini && len(value) > 0 && value[0] != '"' {
		return `{"output":`, `}`
	}
	return "", ""
}

// replacement is what is to stand in a part's place: its text, and what has to be remembered.
type draft struct {
	replacement
	action ActionKind
	text   []byte
	quoted []byte // text as a literal, of a result
	tokens int
}

// replace makes the replacement that the proposal for part i asks for; do is Keep if it does not suit the part.
func (s *runState) makeDraft(i int) draft {
	p, want := &s.parts[i], &s.proposed[i]
	made := draft{replacement: p.replacement}
	if p.action == Keep {
		made.replacement = replacementOf(s.content(i))
		made.capped, made.collapsed = want.capped, want.collapsed
	}
	switch {
	case want.action == Omit:
		s.draftOmission(i, &made)
	case want.action >= Stub:
		s.draftLineOrCut(i, &made)
	default:
		s.draftCut(i, &made)
	}
	switch made.stage = want.stage; made.action {
	case CollapseSpace:
		made.stage = "whitespace"
	case Cap:
		made.stage = "cap"
	}
	return made
}

// leave is what has to be remembered of a part that is whole in the view until now.
func replacementOf(content *wire.Content) replacement {
	return replacement{
		sum: sha256.Sum256(content.Stored), bytes: len(content.Stored), chars: text.Len(content.Text), onlyText: content.OnlyText,
		preview: previewOf(content.Text),
	}
}

// lineOrCut makes the one line that the proposal asks for, unless what stood there before the line was due, or would have
// if there had been a compaction then, is shorter: only white space that was collapsed can be.
func (s *runState) draftLineOrCut(i int, made *draft) {
	p := &s.parts[i]
	cut := *made
	s.draftLine(i, made)
	fits := len(made.quoted) < p.value.End-p.value.Start && (made.tokens < p.now || made.tokens == p.now && p.action != Keep)
	if fits && (p.action != Keep || s.proposed[i].collapsed == 0) {
		return
	}
	made.quoted = bytes.Clone(made.quoted) // the buffers are the cut's now
	s.draftCut(i, &cut)
	if stood := cut.action != Keep && cut.tokens < p.now; !fits || stood && (len(made.quoted) >= len(cut.quoted) || made.tokens > cut.tokens) {
		*made = cut
	}
}

// line makes the one line that the proposal asks for.
func (s *runState) draftLine(i int, made *draft) {
	made.action = s.proposed[i].action
	made.head, made.tail, made.headBytes, made.tailBytes = 0, 0, 0, 0
	s.text = s.words.appendLine(s.text[:0], s.valuesOf(i, &made.replacement))
	s.quoted = rawjson.Quote(s.quoted[:0], s.text)
	made.text, made.quoted, made.tokens = s.text, s.quoted, tokens.Estimate(s.text)
}

// leastCut is how many bytes a bookend cuts away at least: fewer save nothing once the line between head and tail ends
// another word.
const minCut = 32

// cut makes what is to stand in the place of part i if head and tail of it stay: collapsed, then capped, then bookends.
// Each of them is used only if it is shorter than the one before.
func (s *runState) draftCut(i int, made *draft) {
	p, want := &s.parts[i], &s.proposed[i]
	if !made.replacement.onlyText {
		return
	}
	head, tail := s.current(i)
	made.tokens = p.now
	size := p.value.End - p.value.Start
	use := func(do ActionKind, head, tail []byte) {
		shown := head
		if do != CollapseSpace {
			s.text = s.words.appendCut(s.text[:0], do, head, tail, s.valuesOf(i, &made.replacement))
			shown = s.text
		}
		quoted := rawjson.Quote(s.quoted[:0], shown)
		if now := tokens.Estimate(shown); len(quoted) < size && now <= made.tokens {
			made.action, made.quoted, made.tokens, size = do, quoted, now, len(quoted)
			s.quoted, s.spare = s.spare, quoted
			made.headBytes, made.tailBytes = len(head), len(tail)
		}
	}
	if p.action == Keep && want.collapsed > 0 {
		head = text.Collapse(nil, head)
		use(CollapseSpace, head, nil)
	}
	if p.action <= CollapseSpace && want.capped > 0 {
		head, tail = (*resultCap)(&s.policy.Cap).cut(head)
		use(Cap, head, tail)
	}
	if want.action == Bookend {
		if first, last := bookends(head, tail, want.head); len(first)+len(last)+minCut <= len(head)+len(tail) {
			use(Bookend, first, last)
		}
	}
	made.head, made.tail = want.head, want.tail
}

// standing is what stands in the view of part i: its whole text, or head and tail around a line.
func (s *runState) current(i int) (head, tail []byte) {
	p := &s.parts[i]
	if p.action == Keep {
		return s.content(i).Text, nil
	}
	s.unquoted, _ = rawjson.Unquote(s.unquoted[:0], p.value.Of(s.body(p.message)))
	if p.action == CollapseSpace {
		return s.unquoted, nil
	}
	return s.unquoted[:p.headBytes], s.unquoted[len(s.unquoted)-p.tailBytes:]
}

// bookends are the first and the last characters of a text of which head and tail are left.
func bookends(head, tail []byte, chars int) (first, last []byte) {
	first = text.First(head, chars)
	if len(tail) == 0 {
		return first, text.Last(head[len(first):], chars)
	}
	return first, text.Last(tail, chars)
}

// leaving is part i as it has to be persisted.
func (s *runState) resultOf(i int, content *replacement) Result {
	p, stored := &s.parts[i], s.content(i)
	return Result{
		Ref: s.ref(p, content), Seq: s.messages[p.message].seq, Part: p.index, Tool: p.tool, CallID: p.callID,
		Category: string(s.policy.Trim.Categories[p.tool]), MediaType: stored.MediaType, Stored: stored.Stored, SHA256: content.sum,
		Lines: linesOf(stored.Stored), Tokens: p.tokens,
	}
}

func linesOf(stored []byte) int {
	lines := bytes.Count(stored, []byte{'\n'})
	if n := len(stored); n > 0 && stored[n-1] != '\n' {
		lines++
	}
	return lines
}
