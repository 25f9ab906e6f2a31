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
func settle(s *scene, p *Plan) {
	p.history, p.covered = s.history, s.through()
	for m := p.covered; m < len(s.messages); m++ { // what is not covered stays as it stands
		s.messages[m].now = s.standingTokens(m)
	}
	for m := range s.messages {
		p.Before += int64(s.messages[m].now)
		p.Standing += int64(s.standingTokens(m))
	}
	p.After = p.Before
	for m := range s.messages[:p.covered] {
		p.Through = max(p.Through, s.messages[m].through())
	}
	p.leaveOut(s)
	for i := range s.parts {
		if m := s.parts[i].message; m < p.covered && !p.leaves(m) && s.wants[i].below(&s.parts[i]) {
			p.carryOut(s, i)
		}
	}
	p.Kept = p.kept()
}

// standingTokens are those of what stands in the view of message m, where results may have been capped at insertion.
func (h *history) standingTokens(m int) int {
	if m >= h.based {
		if tokens := h.in.Tail[m-h.based].ViewTokens; tokens > 0 {
			return tokens
		}
	}
	return h.messages[m].now
}

// below reports whether the proposal leaves less of a part than what stands in the view.
func (w *proposal) below(p *part) bool {
	return w.do.rung() > p.do.rung() || w.do == p.do && (w.head < p.head || w.tail < p.tail)
}

// carryOut replaces part i if that saves bytes and tokens.
func (p *Plan) carryOut(s *scene, i int) {
	at := &s.parts[i]
	made := s.replace(i)
	if made.do == Keep {
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
	if now := made.tokens; len(p.text)-start >= at.value.End-at.value.Start || now > at.now || now == at.now && at.do == Keep {
		p.text = p.text[:start]
		return
	}
	if at.do == Keep {
		p.Results = append(p.Results, s.leaving(i, &made.left))
	}
	was := at.now
	at.do, at.now, at.left = made.do, made.tokens, made.left
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
type replacement struct {
	left
	do     Do
	text   []byte
	quoted []byte // text as a literal, of a result
	tokens int
}

// replace makes the replacement that the proposal for part i asks for; do is Keep if it does not suit the part.
func (s *scene) replace(i int) replacement {
	p, want := &s.parts[i], &s.wants[i]
	made := replacement{left: p.left}
	if p.do == Keep {
		made.left = leave(s.content(i))
		made.capped, made.squeezed = want.capped, want.squeezed
	}
	switch {
	case want.do == Omit:
		s.omit(i, &made)
	case want.do >= Stub:
		s.lineOrCut(i, &made)
	default:
		s.cut(i, &made)
	}
	switch made.stage = want.stage; made.do {
	case Squeeze:
		made.stage = "whitespace"
	case Cap:
		made.stage = "cap"
	}
	return made
}

// leave is what has to be remembered of a part that is whole in the view until now.
func leave(content *wire.Content) left {
	return left{
		sum: sha256.Sum256(content.Stored), bytes: len(content.Stored), chars: text.Len(content.Text), text: content.OnlyText,
		preview: previewOf(content.Text),
	}
}

// lineOrCut makes the one line that the proposal asks for, unless what stood there before the line was due, or would have
// if there had been a compaction then, is shorter: only white space that was collapsed can be.
func (s *scene) lineOrCut(i int, made *replacement) {
	p := &s.parts[i]
	cut := *made
	s.line(i, made)
	fits := len(made.quoted) < p.value.End-p.value.Start && (made.tokens < p.now || made.tokens == p.now && p.do != Keep)
	if fits && (p.do != Keep || s.wants[i].squeezed == 0) {
		return
	}
	made.quoted = bytes.Clone(made.quoted) // the buffers are the cut's now
	s.cut(i, &cut)
	if stood := cut.do != Keep && cut.tokens < p.now; !fits || stood && (len(made.quoted) >= len(cut.quoted) || made.tokens > cut.tokens) {
		*made = cut
	}
}

// line makes the one line that the proposal asks for.
func (s *scene) line(i int, made *replacement) {
	made.do = s.wants[i].do
	made.head, made.tail, made.headBytes, made.tailBytes = 0, 0, 0, 0
	s.text = s.words.appendLine(s.text[:0], s.valuesOf(i, &made.left))
	s.quoted = rawjson.Quote(s.quoted[:0], s.text)
	made.text, made.quoted, made.tokens = s.text, s.quoted, tokens.Estimate(s.text)
}

// leastCut is how many bytes a bookend cuts away at least: fewer save nothing once the line between head and tail ends
// another word.
const leastCut = 32

// cut makes what is to stand in the place of part i if head and tail of it stay: collapsed, then capped, then bookends.
// Each of them is used only if it is shorter than the one before.
func (s *scene) cut(i int, made *replacement) {
	p, want := &s.parts[i], &s.wants[i]
	if !made.left.text {
		return
	}
	head, tail := s.standing(i)
	made.tokens = p.now
	size := p.value.End - p.value.Start
	use := func(do Do, head, tail []byte) {
		text := head
		if do != Squeeze {
			s.text = s.words.appendCut(s.text[:0], do, head, tail, s.valuesOf(i, &made.left))
			text = s.text
		}
		quoted := rawjson.Quote(s.quoted[:0], text)
		if now := tokens.Estimate(text); len(quoted) < size && now <= made.tokens {
			made.do, made.quoted, made.tokens, size = do, quoted, now, len(quoted)
			s.quoted, s.spare = s.spare, quoted
			made.headBytes, made.tailBytes = len(head), len(tail)
		}
	}
	if p.do == Keep && want.squeezed > 0 {
		head = text.Collapse(nil, head)
		use(Squeeze, head, nil)
	}
	if p.do <= Squeeze && want.capped > 0 {
		head, tail = (*resultCap)(&s.policy.Cap).cut(head)
		use(Cap, head, tail)
	}
	if want.do == Bookend {
		if first, last := bookends(head, tail, want.head); len(first)+len(last)+leastCut <= len(head)+len(tail) {
			use(Bookend, first, last)
		}
	}
	made.head, made.tail = want.head, want.tail
}

// standing is what stands in the view of part i: its whole text, or head and tail around a line.
func (s *scene) standing(i int) (head, tail []byte) {
	p := &s.parts[i]
	if p.do == Keep {
		return s.content(i).Text, nil
	}
	s.unquoted, _ = rawjson.Unquote(s.unquoted[:0], p.value.Of(s.body(p.message)))
	if p.do == Squeeze {
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
func (s *scene) leaving(i int, content *left) Result {
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
