package wire

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// What most calls are written as. Those of other forms have results of a form of their own.
const (
	functionForm = "function_call"
	customForm   = "custom_tool_call"
	legacyForm   = "legacy function_call"
)

// match gives every call a result of its form, which OpenAI insists on: the output of a custom tool answers no call
// of a function, and a message of role tool no legacy one. Where the forms differ, because programs mixed them or a
// repair made the result, both become those of a function, or of a custom tool.
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
		if form == r.formOf(n, p) {
			return
		}
		if form != functionForm && form != customForm {
			call.n.reform(call.p)
		}
		if r.formOf(call.n, call.p) != r.formOf(n, p) {
			n.reform(p)
		}
		r.repaired(r.provider.Codes.Unanswered, "result_matched", n, "call %q and its result are of one form", p.CallID)
	})
}

// reform marks a call or a result as edited. Its message loses the members that belong to the form it had.
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
		return strings.TrimSuffix(itemTypeOf(p.Raw), "_output")
	case own && r.target == session.OpenAIChat && n.isLegacy(p) && (p.Kind == Result || n.count(Call) == 1):
		return legacyForm
	case p.Custom && r.target == session.OpenAIResponses:
		return customForm
	}
	return functionForm
}

func itemTypeOf(item []byte) string {
	at := member(item, "type")
	if at == (Span{}) {
		return ""
	}
	return string(unquoted(at.Of(item)))
}

// isLegacy reports whether a call of a Chat message is its function_call, which has no id and so goes by the name of
// the function, or a result that of one.
func (n *Message) isLegacy(p *Block) bool {
	if p.CallID != functionPrefix+string(unquotedName(p.Name)) {
		return false
	}
	if p.Kind == Result {
		return string(roleIn(n.Raw)) == `"function"`
	}
	return p.Raw != nil && member(p.Raw, "function") == (Span{}) && member(p.Raw, "custom") == (Span{})
}

func (n *Message) count(kind Kind) (found int) {
	for i := range n.Blocks {
		if n.Blocks[i].Kind == kind {
			found++
		}
	}
	return found
}
