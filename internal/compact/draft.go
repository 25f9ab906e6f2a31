package compact

import (
	"bytes"
	"crypto/sha256"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// draft is a replacement that is not applied yet: its text, and what the state remembers of it.
type draft struct {
	replacement
	action ActionKind
	text   []byte // of a call's arguments
	quoted []byte // of a result, as a string literal
	tokens int
}

// makeDraft makes the replacement that is proposed for part i. Its action is Keep if the replacement is no shorter.
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

// replacementOf returns what the state remembers of a part that was whole in the view until now.
func replacementOf(content *wire.Content) replacement {
	return replacement{
		sum:      sha256.Sum256(content.Stored),
		bytes:    len(content.Stored),
		chars:    text.Len(content.Text),
		onlyText: content.OnlyText,
		preview:  previewOf(content.Text),
	}
}

// appendDraft appends a draft as the value of part p. lead and trail are its bytes before and after the text.
func (s *runState) appendDraft(dst []byte, p *part, made *draft) (value []byte, lead, trail int) {
	old := p.value.Of(s.body(p.message))
	if p.kind == arguments {
		return appendArguments(dst, old, made.text), 0, 0
	}
	before, after := wrapping(s.provider, old)
	dst = append(dst, before...)
	dst = append(dst, made.quoted...)
	return append(dst, after...), len(before), len(after)
}

// wrapping returns what a provider needs around a text that replaces a result. If the result is an object that has a
// single text, the part's value is that text, and its object is kept.
func wrapping(p *provider.Facts, value []byte) (before, after string) {
	if p.ResultObjects && len(value) > 0 && value[0] != '"' {
		return `{"output":`, `}`
	}
	return "", ""
}

// draftOmission drafts call i without its large arguments, unless they were omitted before.
func (s *runState) draftOmission(i int, made *draft) {
	if s.parts[i].action == Keep {
		made.action = Omit
		short := s.omissionOf(i)
		made.text, made.tokens = short.text, short.tokens
	}
}

// draftLineOrCut drafts the line that is proposed, unless the text that the line replaces is shorter, or the text that
// a compaction before the line was due would have made is: only collapsed white space can be that short.
func (s *runState) draftLineOrCut(i int, made *draft) {
	p := &s.parts[i]
	cut := *made
	s.draftLine(i, made)
	fits := len(made.quoted) < p.valueBytes() && p.saves(made.tokens)
	if fits && (p.action != Keep || s.proposed[i].collapsed == 0) {
		return
	}
	made.quoted = bytes.Clone(made.quoted) // draftCut writes to the same buffers
	s.draftCut(i, &cut)
	cutFits := cut.action != Keep && cut.tokens < p.now
	if !fits || cutFits && (len(made.quoted) >= len(cut.quoted) || made.tokens > cut.tokens) {
		*made = cut
	}
}

// draftLine drafts the one line that is proposed.
func (s *runState) draftLine(i int, made *draft) {
	made.action = s.proposed[i].action
	made.head, made.tail = 0, 0
	made.headBytes, made.tailBytes = 0, 0
	s.text = s.words.appendLine(s.text[:0], s.valuesOf(i, &made.replacement))
	s.quoted = rawjson.Quote(s.quoted[:0], s.text)
	made.quoted = s.quoted
	made.tokens = tokens.Estimate(s.text)
}

// draftCut drafts head and tail of part i: collapsed, then capped, then bookends, each only if it is shorter.
func (s *runState) draftCut(i int, made *draft) {
	p, want := &s.parts[i], &s.proposed[i]
	if !made.onlyText {
		return
	}
	head, tail := s.current(i)
	made.tokens = p.now
	room := p.valueBytes()
	use := func(action ActionKind, head, tail []byte) {
		shown := head
		if action != CollapseSpace {
			s.text = s.words.appendCut(s.text[:0], action, head, tail, s.valuesOf(i, &made.replacement))
			shown = s.text
		}
		quoted := rawjson.Quote(s.quoted[:0], shown)
		if now := tokens.Estimate(shown); len(quoted) < room && now <= made.tokens {
			made.action, made.tokens = action, now
			made.quoted, room = quoted, len(quoted)
			s.quoted, s.spare = s.spare, quoted
			made.headBytes, made.tailBytes = len(head), len(tail)
		}
	}
	if p.action == Keep && want.collapsed > 0 {
		head = text.Collapse(nil, head)
		use(CollapseSpace, head, nil)
	}
	if p.action <= CollapseSpace && want.capped > 0 {
		head, tail = s.resultCap().cut(head)
		use(Cap, head, tail)
	}
	if want.action == Bookend {
		first, last := bookends(head, tail, want.head)
		if len(first)+len(last)+minCut <= len(head)+len(tail) {
			use(Bookend, first, last)
		}
	}
	made.head, made.tail = want.head, want.tail
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
	return s.unquoted[:p.headBytes], s.unquoted[len(s.unquoted)-p.tailBytes:]
}

// bookends returns the first and the last characters of a text of which head and tail remain.
func bookends(head, tail []byte, chars int) (first, last []byte) {
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
		chars: content.chars, bytes: content.bytes, tokens: p.tokens, seq: want.newer,
	}
	if v.resource == "" {
		v.resource = label(p.tool)
	}
	return v
}
