package compact

import (
	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// draft is a replacement that is not applied yet: its text, and what the state remembers of it.
type draft struct {
	replacement
	action ActionKind
	text   []byte // of a call's arguments
	quoted []byte // of a result, as a string literal
	size   int    // of quoted; 0 for a part that is whole
	tokens int
	object bool // quoted is an object
}

// makeDraft makes the replacement that is proposed for part i. Its action is Keep if the replacement is no shorter.
func (s *runState) makeDraft(i int) draft {
	p, want := &s.parts[i], &s.proposed[i]
	if known, ok := s.drafts[i]; ok && known.want == *want {
		return known.draft
	}
	made := draft{replacement: p.replacement}
	if p.action == Keep {
		made.replacement = s.replacementOf(i)
		made.capped, made.collapsed = s.cappedTo(i), want.collapsed
	}
	if p.action != Keep {
		made.size, made.tokens = p.valueBytes(), p.now
	}
	line := made
	switch {
	case want.action == Omit:
		s.draftOmission(i, &made)
	case p.action < Stub:
		s.draftCut(i, &made)
	}
	if want.action.isLine() && s.draftLine(i, &line) && s.prefers(&line, &made) {
		made = line
	}
	switch made.stage = want.stage; made.action {
	case CollapseSpace:
		made.stage = "whitespace"
	case Cap:
		made.stage = "cap"
	}
	return made
}

// knownDraft is a draft with the proposal that it was made for.
type knownDraft struct {
	want proposal
	draft
}

// replacementOf returns what the state remembers of part i, which was whole in the view until now.
func (s *runState) replacementOf(i int) replacement {
	content := s.content(i)
	return replacement{
		sum:      s.sumOf(i),
		bytes:    len(content.Stored),
		chars:    text.Len(content.Text),
		onlyText: content.OnlyText,
		preview:  previewOf(content.Text),
	}
}

// appendDraft appends a draft as the value of part p. lead and trail are its bytes before and after the text.
func (s *runState) appendDraft(dst []byte, i int, made *draft) (value []byte, lead, trail int) {
	p := &s.parts[i]
	old := p.value.Of(s.body(p.message))
	if p.kind == arguments {
		return appendArguments(dst, old, made.text), 0, 0
	}
	before, after := "", ""
	if !made.object {
		before, after = wrapping(&s.in, s.provider, old, s.policy.Trim.KeepMedia && !s.bare[i])
	}
	dst = append(dst, before...)
	dst = append(dst, made.quoted...)
	return append(dst, after...), len(before), len(after)
}

// wrapping returns what is around a text that replaces a result: the media beside its text, if they are kept,
// or what a provider needs. If the result is an object that has a single text, the part's value is that text, and its
// object is kept.
func wrapping(in *Input, p *provider.Facts, value []byte, keepMedia bool) (before, after string) {
	if keepMedia {
		if mixed, ok := wire.MixedResult(in.Format, value); ok {
			return mixed.Before, mixed.After
		}
	}
	if p.ResultObjects && len(value) > 0 && value[0] != '"' {
		return `{"output":`, `}`
	}
	return "", ""
}

// prefers reports whether a replacement is used instead of the one above it on the ladder: if they must be small, the
// smaller. The one above is the shortest cut that age leaves, so that the answer does not depend on the moment.
func (s *runState) prefers(lower, upper *draft) bool {
	return !s.policy.OnlySmaller || upper.size == 0 || lower.size < upper.size && lower.tokens <= upper.tokens
}

// fits reports whether a text may replace part i, whose original is known: it must be smaller. added is by how many
// bytes JSON writes it longer than the text is, without what the original has, too.
func (s *runState) fits(i int, original *replacement, shown []byte, added int) bool {
	if !s.policy.OnlySmaller {
		return true
	}
	if media := s.media(i); media > 0 {
		return text.Len(shown) < original.chars && s.count.text(shown)+media < s.parts[i].tokens
	}
	size := len(shown) + added
	if s.provider.ResultObjects {
		size += len(`""`) + len(emptyOutput)
	}
	return size < original.bytes && s.count.text(shown) < s.parts[i].tokens
}

// addedTo returns by how many bytes JSON writes a text longer than it is.
func addedTo(text []byte) int { return rawjson.QuotedLen(text) - len(text) }

// addedByCut returns that of head and tail of part i with our words in shown. A part of a text has no more escapes than
// all of it; but what is stored as it was written was counted with all that JSON adds.
func (s *runState) addedByCut(i int, shown, head, tail []byte) int {
	if p := &s.parts[i]; p.action == Keep && len(s.content(i).Stored) == p.valueBytes() {
		return addedTo(shown)
	}
	return addedTo(shown) - addedTo(head) - addedTo(tail) + len(`""`)
}

// media returns the tokens of what stays of result i when a line replaces its text.
func (s *runState) media(i int) int {
	p := &s.parts[i]
	if p.kind != result || s.bare[i] || !s.count.estimates() { // the systems' formulas count no media
		return 0
	}
	value := p.value.Of(s.body(p.message))
	switch { // what an earlier compaction left beside a line stays, whatever the policy is now
	case p.action != Keep && p.onlyText, p.action == Keep && !s.policy.Trim.KeepMedia:
		return 0
	case p.action != Keep:
		return max(p.now-s.count.text(decoded(value)), 0)
	}
	mixed, ok := wire.MixedResult(s.in.Format, value)
	if !ok {
		return 0
	}
	return max(p.tokens-mixed.TextTokens, 0)
}

// emptyOutput is around a text where a provider accepts only objects as results.
const emptyOutput = `{"output":}`

// draftOmission drafts call i without its large arguments, unless they were omitted before.
func (s *runState) draftOmission(i int, made *draft) {
	p := &s.parts[i]
	if p.action != Keep {
		return
	}
	if short := s.omissionOf(i); !s.policy.OnlySmaller || len(short.text) < made.bytes && short.tokens < p.tokens {
		made.action, made.text, made.tokens = Omit, short.text, short.tokens
	}
}

// draftLine drafts the one line that is proposed, and reports whether it fits.
func (s *runState) draftLine(i int, made *draft) bool {
	v := s.valuesOf(i, &made.replacement)
	s.text = s.words.appendLine(s.text[:0], v)
	if object := s.objectOf(i); object != nil && v.action == Stub {
		if s.text = s.withoutLargeMembers(object, s.text); s.text == nil {
			return true
		}
		made.object = true
	}
	if !s.fits(i, &made.replacement, s.text, addedTo(s.text)) {
		made.object = false
		return false
	}
	made.action = v.action
	made.head, made.tail = 0, 0
	made.headBytes, made.tailBytes = 0, 0
	made.tokens = s.count.text(s.text) + s.media(i)
	if made.quoted = s.text; !made.object {
		s.quoted = rawjson.Quote(s.quoted[:0], s.text)
		made.quoted = s.quoted
	}
	made.size = len(made.quoted)
	return true
}

// objectOf returns result i if it is a JSON object and the policy replaces only its large members, else nil.
func (s *runState) objectOf(i int) []byte {
	p := &s.parts[i]
	if !s.policy.Dedupe.OmitFields || p.action != Keep || s.provider.ResultObjects {
		return nil
	}
	if value := p.value.Of(s.body(p.message)); value[0] == '{' {
		return value
	}
	return nil
}

// draftCut drafts head and tail of part i: collapsed, then capped, then bookends, each only if it fits.
func (s *runState) draftCut(i int, made *draft) {
	p, want := &s.parts[i], &s.proposed[i]
	if !made.onlyText {
		return
	}
	head, tail := s.current(i)
	v := s.valuesOf(i, &made.replacement)
	if p.action == Keep && want.collapsed > 0 {
		head = text.Collapse(nil, head)
		s.use(CollapseSpace, i, made, head, nil, v)
	}
	if p.action <= CollapseSpace && want.capped > 0 {
		head, tail = s.resultCap(i).cut(head)
		s.use(Cap, i, made, head, tail, v)
	}
	made.head, made.tail = want.bookend, want.bookend
	if want.bookend == 0 {
		return
	}
	first, last := bookends(head, tail, want.bookend)
	cut := len(head) + len(tail) - len(first) - len(last)
	switch {
	case cut >= minCut, cut > 0 && !s.policy.OnlySmaller:
		s.use(Bookend, i, made, first, last, v)
	case cut == 0 && !s.policy.OnlySmaller && made.action < Cap && len(s.words.appendHead(nil, v)) > 0:
		v.whole = true // all that a bookend adds is the line before its head
		s.use(Bookend, i, made, head, tail, v)
	}
}

// use makes head and tail the draft of part i if they fit and are preferred to what it is so far.
func (s *runState) use(action ActionKind, i int, made *draft, head, tail []byte, v values) {
	shown := head
	if action != CollapseSpace {
		s.text = s.words.appendCut(s.text[:0], action, head, tail, v)
		shown = s.text
	}
	if !s.fits(i, &made.replacement, shown, s.addedByCut(i, shown, head, tail)) {
		return
	}
	quoted := rawjson.Quote(s.quoted[:0], shown)
	next := draft{size: len(quoted), tokens: s.count.text(shown)}
	if !s.prefers(&next, made) {
		return
	}
	made.action, made.quoted = action, quoted
	made.size, made.tokens = next.size, next.tokens
	made.headBytes, made.tailBytes = len(head), len(tail)
	s.quoted, s.spare = s.spare, quoted
}

// current returns what the view has of part i: its whole text, or head and tail around a line.
func (s *runState) current(i int) (head, tail []byte) {
	p := &s.parts[i]
	if p.action == Keep {
		return s.content(i).Text, nil
	}
	s.unquoted, _ = rawjson.Unquote(s.unquoted[:0], p.value.Of(s.body(p.message)))
	if p.action == CollapseSpace {
		return s.unquoted, nil
	}
	start := 0
	if p.action == Bookend {
		start = len(s.words.appendHead(nil, s.valuesOf(i, &p.replacement)))
	}
	return s.unquoted[start : start+p.headBytes], s.unquoted[len(s.unquoted)-p.tailBytes:]
}

// bookends returns the head and the tail that remain of a text: all of one that has no more characters, also where a
// character of two would be cut.
func bookends(head, tail []byte, chars int) (first, last []byte) {
	const mostBytes = 3 // of a character
	if len(tail) == 0 && len(head) <= 2*chars*mostBytes && text.Len(head) <= 2*chars {
		return head, nil
	}
	first = text.First(head, chars)
	if len(tail) == 0 {
		return first, text.Last(head[len(first):], chars)
	}
	return first, text.Last(tail, chars)
}

// valuesOf returns the values for the templates of part i's replacement.
func (s *runState) valuesOf(i int, content *replacement) values {
	p, want := &s.parts[i], &s.proposed[i]
	v := values{
		action: want.action, ref: s.ref(p, content), tool: p.tool, resource: p.resource, preview: content.preview,
		chars: content.chars, bytes: content.bytes, tokens: p.tokens, seq: want.newer, callID: p.callID, count: s.count,
	}
	switch s.policy.Trim.Categories[p.tool] {
	case policy.NonReproducible, policy.Computational:
	default:
		v.again = true
	}
	if v.resource == "" {
		v.resource = label(p.tool)
	}
	if p.kind == prose || p.source != "" {
		v.refText = s.shownRef(p, content)
	}
	return v
}
