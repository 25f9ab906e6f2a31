package wire

import (
	"github.com/varve-dev/varve/internal/session"
)

// fitArguments makes the arguments of calls texts, as OpenAI requires them: those that are missing are "{}", any other
// value is written into a text.
func (r *repairer) fitArguments(n *Message) {
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if value := valueOf(p.Raw, "arguments"); r.isLooseItem(n, p, value) {
			p.Raw, n.Edited = setMember(p.Raw, "arguments", appendArguments(nil, value)), true
			r.repaired("V-C9", "arguments_as_text", n, "the arguments of a tool of an MCP server are a text")
		}
		if p.Kind != Call || !p.loose || !r.own(p) {
			continue
		}
		holder, name := argumentsOf(r.target, p.Raw)
		if value := valueOf(holder.Of(p.Raw), name); name == "" || value != nil && value[0] == '"' {
			continue
		}
		edit := Edit{Span: holder, With: setMember(holder.Of(p.Raw), name, appendArguments(nil, p.Value))}
		p.Raw, n.Edited = Replace(nil, p.Raw, []Edit{edit}), true
		r.repaired("V-C9", "arguments_as_text", n, "the arguments of call %q are a text", p.CallID)
	}
}

// textArguments are the items with arguments that are a text, besides calls that the caller answers.
var textArguments = map[string]bool{"mcp_call": true, "mcp_approval_request": true}

// isLooseItem reports whether a block is an item of Responses whose arguments are no text.
func (r *repairer) isLooseItem(n *Message, p *Block, arguments []byte) bool {
	isItem := r.target == session.OpenAIResponses && p.Kind == Opaque && r.own(p) && !isMessageItem(n.Raw)
	return isItem && textArguments[stringMember(p.Raw, "type")] && (arguments == nil || arguments[0] != '"')
}

// argumentsOf returns the object in a call that has its arguments, or the free text of a custom tool, and their name. A
// call whose form has neither has no name of them.
func argumentsOf(f session.Format, call []byte) (holder Span, name string) {
	whole := Span{End: len(call)}
	function, custom := member(call, "function"), member(call, "custom")
	switch {
	case isType(call, functionForm):
		return whole, "arguments"
	case isType(call, customForm):
		return whole, "input"
	case f == session.OpenAIResponses:
		return whole, ""
	case function != (Span{}) && call[function.Start] == '{':
		return function, "arguments"
	case custom != (Span{}) && call[custom.Start] == '{':
		return custom, "input"
	case member(call, "id") == (Span{}):
		return whole, "arguments" // a function_call of Chat Completions
	}
	return whole, ""
}

// argumentsAreTexts checks V-C9.
func (c *checker) argumentsAreTexts() {
	for i, p := range c.parts(Call) {
		fixed := c.format == session.OpenAIResponses && p.Fixed
		if !fixed && (p.Value == (Span{}) || c.bodies[i][p.Value.Start] != '"') {
			c.report(i, "the arguments of call %q are no text", p.CallID)
		}
	}
	for i, p := range c.parts(Opaque) {
		if item := c.raw(i, p); c.format == session.OpenAIResponses && textArguments[stringMember(item, "type")] {
			if value := valueOf(item, "arguments"); value == nil || value[0] != '"' {
				c.report(i, "the arguments of a tool of an MCP server are no text")
			}
		}
	}
}
