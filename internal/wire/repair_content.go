package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// clean takes out of a message what its provider would refuse, and reports whether anything is left of it. last says
// that it is the view's last message.
func (r *repairer) clean(n *Message, last bool) bool {
	if r.dropsEmptyTexts(n) {
		r.dropEmptyTexts(n)
	}
	r.mend(n)
	if n.Role == User && len(n.Blocks) > 0 && onlyResults(n.Blocks) {
		n.Role = Tool // what stood beside the results is gone
	}
	switch r.target {
	case session.Anthropic:
		r.dropUnsigned(n)
		r.mendResults(n)
	case session.OpenAIResponses:
		r.mendResults(n)
	case session.OpenAIChat:
		r.textResult(n)
	}
	says := len(n.Blocks) > 0
	if r.target == session.OpenAIChat && r.keeps(n) && n.Role != Tool {
		says = says && n.flags&FlagEmpty == 0
	}
	switch {
	case says:
		return true
	case r.keeps(n) && !r.refusesEmpty(n, last):
		return true
	case r.keeps(n) || n.Raw != nil && n.Format == r.target:
		r.repaired(r.provider.Codes.Empty, "empty_message", n, "the message says nothing and is left out")
	}
	return false
}

// dropsEmptyTexts reports whether empty texts of the message are left out. Chat Completions takes one alone, as which
// its own message came, but not several that other messages are joined of.
func (r *repairer) dropsEmptyTexts(n *Message) bool {
	return r.provider.NoEmptyText || r.target == session.OpenAIChat && n.Format != r.target
}

func (r *repairer) dropEmptyTexts(n *Message) {
	empty := func(p Block) bool {
		said := p.Kind == Text || p.Kind == Reasoning && p.Text != nil
		sealed := isSigned(p.Signature) && n.Format == r.target && (p.Kind == Reasoning || r.target == session.Gemini)
		return said && !sealed && blank(p.Text)
	}
	if !slices.ContainsFunc(n.Blocks, empty) {
		return
	}
	n.Blocks = slices.DeleteFunc(slices.Clone(n.Blocks), empty)
	if n.Edited = true; len(n.Blocks) > 0 && n.Format == r.target {
		r.repaired(r.provider.Codes.Empty, "empty_text", n, "an empty text is left out")
	}
}

// refusesEmpty reports whether a message without blocks, as it came in, is refused.
func (r *repairer) refusesEmpty(n *Message, last bool) bool {
	switch r.target {
	case session.OpenAIChat:
		return n.flags&(FlagEmptyArray|FlagEmpty) != 0
	case session.Anthropic:
		return n.Role != System && !(last && n.Role == Assistant && !provider.RefusesPrefill(r.Model))
	case session.Gemini:
		return n.Role != System
	}
	return false
}

// textResult marks a result as edited that is not the text that Chat Completions wants.
func (r *repairer) textResult(n *Message) {
	if !r.keeps(n) || n.Role != Tool {
		return
	}
	if n.flags&(FlagResultNotText|FlagEmptyArray) != 0 || member(n.Raw, "content") == (Span{}) {
		n.Edited = true
		r.repaired("V-C3", "result_as_text", n, "a result is not text: its images stand behind it, all else as text")
	}
}

// mendResults marks results as edited whose content is neither a text nor an array.
func (r *repairer) mendResults(n *Message) {
	if n.Format != r.target {
		return
	}
	for i := range n.Blocks {
		p := &n.Blocks[i]
		loose := slices.ContainsFunc(p.Content, func(c Block) bool { return c.Edited })
		if p.Kind != Result || p.Edited || !loose && !(len(p.Content) == 0 && withoutOutput(p.Raw)) {
			continue
		}
		p.Edited, n.Edited = true, true
		r.repaired(r.provider.Codes.Orphan, "result_as_text", n,
			"a result is neither a text nor an array: it is a text")
	}
}

// withoutOutput reports whether an item is a function's result and says nothing. Anthropic's results may.
func withoutOutput(item []byte) bool {
	function := isType(item, "function_call_output") || isType(item, "custom_tool_call_output")
	return function && member(item, "output") == (Span{})
}

// dropUnsigned turns reasoning into texts that Anthropic did not sign, or that is another model's than the one asked.
func (r *repairer) dropUnsigned(n *Message) {
	if n.Format != session.Anthropic {
		return // the encoder does it
	}
	stale := r.Author != "" && r.Model != "" && provider.BaseModel(r.Author) != provider.BaseModel(r.Model)
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if p.Kind != Reasoning || isSigned(p.Signature) && !stale {
			continue
		}
		if !n.Edited {
			n.Blocks, n.Edited = slices.Clone(n.Blocks), true
			p = &n.Blocks[i]
		}
		rule := "V-A7"
		if stale {
			rule = "V-A8"
		}
		r.repaired(rule, "reasoning_as_text", n, "a thought that the model would not take back is a text")
		*p = Block{Kind: Text, Text: substitute(p), Edited: true}
	}
}

// moveLateReasoning turns reasoning after a call of its turn into texts: Anthropic wants it before.
func (r *repairer) moveLateReasoning(list []Message) {
	called := false
	for i := range list {
		n := &list[i]
		called = called && n.Role == Assistant && r.target == session.Anthropic
		for j := range n.Blocks {
			p := &n.Blocks[j]
			called = called || p.Kind == Call
			if p.Kind == Reasoning && called && r.target == session.Anthropic {
				*p, n.Edited = Block{Kind: Text, Text: substitute(p), Edited: true}, true
				r.repaired("V-A7", "reasoning_as_text", n, "a thought behind a call of its turn is a text")
			}
		}
	}
}

// dropIdleReasoning makes texts of OpenAI's reasoning items behind which the model said nothing: it takes one back
// only with the item that it led to.
func (r *repairer) dropIdleReasoning(list []Message) {
	if r.target != session.OpenAIResponses {
		return
	}
	for i := len(list) - 1; i >= 0; i-- {
		n := &list[i]
		isReasoning := r.keeps(n) && n.Role == Assistant && len(n.Blocks) > 0 && n.Blocks[0].Kind == Reasoning
		if !isReasoning || r.isFollowed(list, i) {
			continue
		}
		n.Blocks, n.Edited = []Block{{Kind: Text, Text: substitute(&n.Blocks[0])}}, true
		n.Extra = nil
		r.repaired("V-R3", "reasoning_as_text", n, "a thought that led to nothing is a text")
	}
}

// isFollowed reports whether what the model said after the reasoning item i is in the list. Reasoning that is known
// by its id alone needs an item that has its own id, too.
func (r *repairer) isFollowed(list []Message, i int) bool {
	if i+1 == len(list) || list[i+1].Role != Assistant {
		return false
	}
	next := &list[i+1]
	return !byID(list[i].Raw) || r.keeps(next) && valueOf(next.Raw, "id") != nil
}

// limitCacheMarks leaves the newest marks for the provider's cache, of which it takes no more than a few.
func (r *repairer) limitCacheMarks(list []Message) {
	if r.provider.CacheMarks == 0 {
		return
	}
	marks := 0
	for i := len(list) - 1; i >= 0; i-- {
		n := &list[i]
		if r.unmarkNewest(&n.Blocks, &marks) {
			n.Edited = true
			r.repaired("V-A9", "cache_mark_dropped", n,
				"more than %d cache_control: an older one is left out", r.provider.CacheMarks)
		}
	}
}

// unmarkNewest counts the marks of blocks, the last ones first, and reports whether it dropped any. A message may hold
// blocks of several formats, and a result that is written anew still has its blocks as they came.
func (r *repairer) unmarkNewest(pieces *[]Block, marks *int) (dropped bool) {
	for j := len(*pieces) - 1; j >= 0; j-- {
		p := &(*pieces)[j]
		if p.Edited && p.Kind == Result {
			dropped = r.unmarkNewest(&p.Content, marks) || dropped
			continue
		}
		found, empty := marksIn(p.Raw)
		if p.Format != r.target || p.Edited || found == 0 {
			continue
		}
		if *marks += found; *marks > r.provider.CacheMarks || empty {
			*marks -= found
			*pieces = slices.Clone(*pieces)
			(*pieces)[j].Raw, dropped = unmarked(p.Raw), true
		}
	}
	return dropped
}
