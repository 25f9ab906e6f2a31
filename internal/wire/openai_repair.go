package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// The forms that most calls are written in. Calls of other forms have results of their own forms.
const (
	functionForm = "function_call"
	customForm   = "custom_tool_call"
	legacyForm   = "legacy function_call"
)

// match makes every result one of its call's form, which OpenAI requires: the output of a custom tool cannot answer a
// call of a function, nor a message of role tool a legacy call. Where the forms differ, because a client mixed them or
// a repair made the result, call and result get the form of a function, or that of a custom tool.
func (r *repairer) match(list []Message) {
	if !fromOpenAI(r.target) {
		return
	}
	type paired struct {
		n *Message
		p *Block
	}
	calls := map[int]paired{}
	each(list, Call, func(n *Message, p *Block) { calls[p.pair] = paired{n, p} })
	each(list, Result, func(n *Message, p *Block) {
		call, ok := calls[p.pair]
		if !ok || p.pair == 0 {
			return
		}
		p.Custom = call.p.Custom
		form := r.formOf(call.n, call.p)
		if r.isOfOtherForm(n, p, form) {
			n.Extra = nil
		}
		if form == r.formOf(n, p) {
			return
		}
		if form != functionForm && form != customForm {
			if r.keeps(call.n) {
				r.repaired(r.provider.Codes.Unanswered, "result_matched", call.n,
					"call %q has the form of a function's, as its result", p.CallID)
			}
			call.n.reform(call.p)
		}
		if r.formOf(call.n, call.p) != r.formOf(n, p) {
			n.reform(p)
		}
		r.repaired(r.provider.Codes.Unanswered, "result_matched", n,
			"call %q and its result have the same form", p.CallID)
	})
}

// isOfOtherForm reports whether a result came as that of a call of another form: what else it has is not of this one.
func (r *repairer) isOfOtherForm(n *Message, p *Block, form string) bool {
	came := r.target == session.OpenAIResponses && p.Format == r.target && p.Raw != nil
	return came && itemFormOf(n) != form
}

// itemFormOf returns the form of the item that a call came as, or of the one that a result came for.
func itemFormOf(n *Message) string {
	form := n.flags >> formShift & (1<<formBits - 1)
	switch {
	case form > 0:
		return itemTools[form] + "_call"
	case n.flags&FlagCustom != 0:
		return customForm
	}
	return functionForm
}

// reform marks a call or a result as edited, and removes from its message the members of its old form.
func (n *Message) reform(p *Block) {
	n.Edited = true
	n.Extra = nil
	p.Edited = true
}

// formOf returns the form that a call will be written in, or the call that a result is written for.
func (r *repairer) formOf(n *Message, p *Block) string {
	own := p.Format == r.target && !p.Edited
	switch {
	case own && r.target == session.OpenAIResponses && p.Raw != nil:
		return itemFormOf(n)
	case own && r.target == session.OpenAIChat && n.isLegacy(p) && (p.Kind == Result || n.count(Call) == 1):
		return legacyForm
	case p.Custom && r.target == session.OpenAIResponses:
		return customForm
	}
	return functionForm
}

// textResult marks a result as edited if it is not the text that Chat Completions requires.
func (r *repairer) textResult(n *Message) {
	if !r.keeps(n) || n.Role != Tool {
		return
	}
	hasContent := len(n.Blocks[0].Content) > 0 || member(n.Raw, "content") != (Span{})
	if n.flags&(FlagResultNotText|FlagEmptyArray) != 0 || !hasContent {
		n.Edited = true
		r.repaired("V-C3", "result_as_text", n,
			"a result is text alone: its images come after it, everything else is text")
	}
}

// mendResults marks results as edited if their content is neither a text nor an array.
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
			"a result is a text: it was neither a text nor an array")
	}
}

// withoutOutput reports whether an item is a function's result without an output. Results of Anthropic may have none.
func withoutOutput(item []byte) bool {
	function := isType(item, "function_call_output") || isType(item, "custom_tool_call_output")
	return function && member(item, "output") == (Span{})
}

// dropIdleReasoning turns OpenAI's reasoning items into texts if no item of the model follows: the model takes
// reasoning back only with the item that it led to. What is encrypted is left out.
func (r *repairer) dropIdleReasoning(list []Message) []Message {
	if r.target != session.OpenAIResponses {
		return list
	}
	for i := len(list) - 1; i >= 0; i-- {
		n := &list[i]
		if n.Role == Assistant && n.Format != r.target {
			if n.showIdle(i+1 < len(list) && list[i+1].Role == Assistant); len(n.Blocks) == 0 {
				list = slices.Delete(list, i, i+1)
			}
			continue
		}
		isReasoning := r.keeps(n) && n.Role == Assistant && len(n.Blocks) > 0 && n.Blocks[0].Kind == Reasoning
		if !isReasoning || r.isFollowed(list, i) {
			continue
		}
		r.forgetThought(list[i+1:])
		if n.Blocks[0].Text == nil {
			r.repaired("V-R3", "reasoning_dropped", n, "encrypted reasoning that nothing follows is left out")
			list = slices.Delete(list, i, i+1)
			continue
		}
		n.Blocks, n.Edited = []Block{{Kind: Text, Text: substitute(&n.Blocks[0])}}, true
		n.Extra = nil
		r.repaired("V-R3", "reasoning_as_text", n, "reasoning that nothing follows is a text")
	}
	return list
}

// showIdle makes texts of the items of reasoning at the end of a message that came in another format, unless another
// message of the assistant follows. What is encrypted is left out.
func (n *Message) showIdle(followed bool) {
	for i := len(n.Blocks) - 1; i >= 0 && !followed && n.Blocks[i].Kind == Reasoning; i-- {
		if n.Blocks[i].Text == nil {
			n.Blocks, n.Edited = slices.Delete(n.Blocks, i, i+1), true
			continue
		}
		n.makeText(&n.Blocks[i], substitute(&n.Blocks[i]))
	}
}

// isFollowed reports whether the item of the model that the reasoning item i led to is in the list. Reasoning that is
// known by its id alone requires an item that has its own id, too.
func (r *repairer) isFollowed(list []Message, i int) bool {
	if i+1 == len(list) || list[i+1].Role != Assistant {
		return false
	}
	next := &list[i+1]
	return !byID(list[i].Raw) || r.keeps(next) && valueOf(next.Raw, "id") != nil
}

// isForeign reports whether what the author of a view encrypted is another provider's than the one asked, or another
// organisation's: "Encrypted content could not be verified" (invalid_encrypted_content). A name that tells no provider
// is nobody's.
func (o *Options) isForeign() bool {
	return o.Author != "" && o.Model != "" && provider.Owner(o.Author) != provider.Owner(o.Model)
}

// isForeignThought reports whether an item is reasoning that only another provider can read, or knows by its id.
func (r *repairer) isForeignThought(n *Message) bool {
	if r.target != session.OpenAIResponses || !r.keepsFormat(n) || !r.isForeign() {
		return false
	}
	return len(n.Blocks) == 1 && n.Blocks[0].Kind == Reasoning && isBound(n.Raw)
}

func isBound(item []byte) bool {
	return isSigned(valueOf(item, "encrypted_content")) || isType(item, "reasoning") && byID(item)
}

// reasoningBound checks V-R9.
func (c *checker) reasoningBound() {
	if !c.isForeign() {
		return
	}
	for i, item := range c.bodies {
		if isType(item, "reasoning") && isBound(item) {
			c.report(i, "reasoning of %s is sent to %s", c.Author, c.Model)
		}
	}
}
