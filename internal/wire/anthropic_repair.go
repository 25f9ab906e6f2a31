package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// showUnsigned turns reasoning into texts if Anthropic did not sign it.
func (r *repairer) showUnsigned(n *Message) {
	if n.Format != session.Anthropic || r.provider.Unsigned {
		return // the encoder writes that of other formats as a text
	}
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Reasoning && !isSigned(p.Signature) {
			r.repaired("V-A7", "reasoning_as_text", n, "reasoning that the model does not take back is a text")
			n.makeText(p, substitute(p))
		}
	}
}

// dropSealed leaves out the thoughts that the model which is asked cannot read: those that only another provider can,
// and, of Anthropic's, those of another model, which the API drops itself
// (platform.claude.com/docs/en/build-with-claude/extended-thinking). A text in their place would be imitated.
func (r *repairer) dropSealed(n *Message) {
	rule := r.provider.Codes.Content
	foreign := func(p Block) bool { return p.Kind == Reasoning && p.Text == nil && p.Format != r.target }
	switch r.target {
	case session.Anthropic:
		rule = "V-A8"
		stale := r.isStale()
		foreign = func(p Block) bool {
			signed := p.Format == r.target && isSigned(p.Signature)
			kept := r.provider.Unsigned && isType(p.Raw, "thinking")
			return p.Kind == Reasoning && (signed && stale || !signed && p.Text == nil && !kept)
		}
	case session.AISDK: // which keeps what any provider wants back
		foreign = func(p Block) bool { return p.Kind == Reasoning && p.Text == nil && reasoningMetadata(&p) == nil }
	}
	if !slices.ContainsFunc(n.Blocks, foreign) {
		return
	}
	n.Blocks, n.Edited = slices.DeleteFunc(n.Blocks, foreign), true
	r.repaired(rule, "reasoning_dropped", n, "reasoning that the model cannot read is left out")
}

// isStale reports whether the reasoning of a view is another model's than the one asked.
func (r *repairer) isStale() bool {
	return r.Author != "" && r.Model != "" && provider.BaseModel(r.Author) != provider.BaseModel(r.Model)
}

// mendCompaction changes the content "" of a compaction to null: both mean that there is no summary.
func (r *repairer) mendCompaction(n *Message) {
	for i := range n.Blocks {
		if raw := n.Blocks[i].Raw; n.Blocks[i].Kind == Opaque && emptyCompaction(raw) {
			n.Blocks[i].Raw = Replace(nil, raw, []Edit{{Span: member(raw, "content"), With: []byte("null")}})
			n.Edited = true
			r.repaired("V-A10", "compaction_null", n, "the content of a compaction is null instead of an empty text")
		}
	}
}

// limitCacheMarks removes all but the newest marks for the provider's cache, because the provider takes only a few, and
// settles their order.
func (r *repairer) limitCacheMarks(list []Message) {
	if r.provider.CacheMarks == 0 || !r.marked {
		return
	}
	marks := 0
	for i := len(list) - 1; i >= 0; i-- {
		n := &list[i]
		if r.unmarkNewest(n.Blocks, &marks) {
			n.Edited = true
			r.repaired("V-A9", "cache_mark_dropped", n,
				"more than %d cache_control: an older one is removed", r.provider.CacheMarks)
		}
	}
	r.shortenMarks(list)
}

// shortenMarks makes marks of an hour that are behind one of five minutes marks of five minutes: the API requires the
// long ones first (platform.claude.com/docs/en/build-with-claude/prompt-caching, Mixing different TTLs).
func (r *repairer) shortenMarks(list []Message) {
	short := false
	for i := range list {
		n := &list[i]
		if r.marked && r.shortenIn(n.Blocks, &short) {
			n.Edited = true
			r.repaired("V-A9", "cache_mark_shortened", n, "a cache_control of 1h behind one of 5m is of 5m")
		}
	}
}

func (r *repairer) shortenIn(blocks []Block, short *bool) (shortened bool) {
	for j := range blocks {
		p := &blocks[j]
		if p.Edited && p.Kind == Result {
			shortened = r.shortenIn(p.Content, short) || shortened
			continue
		}
		if p.Format != r.target || p.Edited || p.Raw == nil {
			continue
		}
		var changed bool
		p.Raw, changed = shortMarks(p.Raw, short)
		shortened = shortened || changed
	}
	return shortened
}

// shortMarks returns a block in which no mark of an hour is behind one of five minutes. A mark on a block is behind
// those inside it. short reports whether there has been one of five minutes.
func shortMarks(block []byte, short *bool) (made []byte, changed bool) {
	var edits []Edit
	if content := member(block, "content"); content != (Span{}) && block[content.Start] == '[' {
		for at := range rawjson.Elements(block, content.Start) {
			if inner, changed := shortMarks(at.Of(block), short); changed {
				edits = append(edits, Edit{Span: at, With: inner})
			}
		}
	}
	at := member(block, "cache_control")
	if at == (Span{}) {
		return Replace(nil, block, edits), len(edits) > 0
	}
	long := stringMember(at.Of(block), "ttl") == "1h"
	if long && *short {
		edits = append(edits, Edit{Span: at, With: without(at.Of(block), "ttl")})
		slices.SortFunc(edits, func(a, b Edit) int { return a.Span.Start - b.Span.Start })
	}
	*short = *short || !long
	return Replace(nil, block, edits), len(edits) > 0
}

// unmarkNewest counts the marks of blocks, the last ones first, and reports whether it dropped any. A message may hold
// blocks of several formats, and a result that is written anew still has its blocks as they came.
func (r *repairer) unmarkNewest(blocks []Block, marks *int) (dropped bool) {
	for j := len(blocks) - 1; j >= 0; j-- {
		p := &blocks[j]
		if p.Edited && p.Kind == Result {
			dropped = r.unmarkNewest(p.Content, marks) || dropped
			continue
		}
		found, empty := marksIn(p.Raw)
		if p.Format != r.target || p.Edited || found == 0 {
			continue
		}
		if *marks += found; *marks > r.provider.CacheMarks || empty {
			*marks -= found
			p.Raw = unmarked(p.Raw)
			dropped = true
		}
	}
	return dropped
}

// marksIn counts the marks for the provider's cache in a block and in the blocks inside it. empty reports whether one
// of them is on an empty text.
func marksIn(block []byte) (marks int, empty bool) {
	count := func(block []byte) bool {
		if member(block, "cache_control") != (Span{}) {
			marks++
			empty = empty || string(valueOf(block, "text")) == `""`
		}
		return true
	}
	count(block)
	yieldBlocks(block, count)
	return marks, empty
}

// unmarked returns a block without marks, and without those in the blocks of its content.
func unmarked(block []byte) []byte {
	block = without(block, "cache_control")
	content := member(block, "content")
	if content == (Span{}) || block[content.Start] != '[' {
		return block
	}
	var edits []Edit
	for at := range rawjson.Elements(block, content.Start) {
		if inner := at.Of(block); member(inner, "cache_control") != (Span{}) {
			edits = append(edits, Edit{Span: at, With: without(inner, "cache_control")})
		}
	}
	return Replace(nil, block, edits)
}

// trimEnd removes the white space at the end of the last text, also of a text that replaces a block of another format.
func (r *repairer) trimEnd(n *Message) {
	if len(n.Blocks) == 0 {
		return
	}
	p := n.Blocks[len(n.Blocks)-1]
	if p.Kind != Text {
		if p.Kind == Call || p.Kind == Result || p.Format == r.target && p.Raw != nil && !p.Edited {
			return
		}
		p = Block{Kind: Text, Text: substitute(&p)}
	}
	trimmed := trimRight(p.Text)
	if len(trimmed) == len(p.Text) {
		return
	}
	p.Text = trimmed
	p.Edited = true
	n.Edited = true
	n.Blocks = append(slices.Clone(n.Blocks[:len(n.Blocks)-1]), p)
	r.repaired("V-A6", "trailing_space", n, "white space at the end of the last text is removed")
}

// trimRight removes the white space at the end of the text of a literal. It does not decode the text, which may contain
// what only the literal can express.
func trimRight(literal []byte) []byte {
	inner := literal[1 : len(literal)-1]
	for {
		n := len(inner)
		switch {
		case bytes.HasSuffix(inner, []byte(" ")):
			n--
		case escaped(inner, 2) && strings.IndexByte("nrt", inner[n-1]) >= 0:
			n -= 2
		case escaped(inner, 6) && slices.Contains(escapedSpaces, strings.ToLower(string(inner[n-5:]))):
			n -= 6
		default:
			return wrap(nil, `"`, inner, `"`)
		}
		inner = inner[:n]
	}
}

var escapedSpaces = []string{"u0020", "u000a", "u000d", "u0009"}
