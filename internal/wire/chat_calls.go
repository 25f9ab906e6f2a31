package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// splitCalls writes a message with more calls than the provider takes as several, each with the results of its calls
// behind it. A call of one that is not the last, and has no result yet, gets one that says so.
func (r *repairer) splitCalls(list []Message) []Message {
	limit := r.provider.MaxCalls
	if limit == 0 || !slices.ContainsFunc(list, func(n Message) bool { return n.count(Call) > limit }) {
		return list
	}
	var out []Message
	for len(list) > 0 {
		n := list[0]
		results := 1
		for results < len(list) && list[results].Role == Tool {
			results++
		}
		if n.count(Call) <= limit {
			out, list = append(out, n), list[1:]
			continue
		}
		r.repaired(r.provider.Codes.Count, "calls_split", &n, "a message has at most %d calls: it is several", limit)
		out = append(out, n.split(limit, list[1:results])...)
		list = list[results:]
	}
	return out
}

// split returns a message as several with at most this many calls, with the results of these.
func (n *Message) split(limit int, results []Message) (out []Message) {
	answered := map[int]bool{}
	each(results, Result, func(_ *Message, p *Block) { answered[p.pair] = true })
	one, calls := *n, map[int]bool{}
	one.Blocks, one.Edited = nil, true
	for _, p := range n.Blocks {
		if p.Kind == Call && len(calls) == limit {
			out = append(append(out, one), resultsTo(calls, results)...)
			out = append(out, one.missing(answered)...)
			one.Blocks, one.Extra = nil, nil
			calls = map[int]bool{}
		}
		if p.Kind == Call {
			calls[p.pair] = true
		}
		one.Blocks = append(one.Blocks, p)
	}
	return append(append(out, one), resultsTo(calls, results)...)
}

// resultsTo returns the results of some calls.
func resultsTo(calls map[int]bool, results []Message) (list []Message) {
	for i := range results {
		n := &results[i]
		var mine []Block
		for _, p := range n.Blocks {
			if calls[p.pair] {
				mine = append(mine, p)
			}
		}
		if len(mine) > 0 {
			list = append(list, resultsOf(n, mine))
		}
	}
	return list
}

// missing returns results for the calls of a message that have none.
func (n *Message) missing(answered map[int]bool) (list []Message) {
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Call && !answered[p.pair] {
			list = append(list, missingResult(p, pendingResult))
		}
	}
	return list
}

// dropStrays leaves out of tool_calls what is no call.
func (r *repairer) dropStrays(n *Message) {
	isStray := func(p Block) bool {
		return p.Kind == Opaque && p.Format == session.OpenAIChat && !p.Edited && isNoCall(p.Raw)
	}
	if n.Format == session.OpenAIChat && slices.ContainsFunc(n.Blocks, isStray) {
		n.Blocks, n.Edited = slices.DeleteFunc(n.Blocks, isStray), true
		r.told(n.Format == r.target, "V-C11", "member_dropped", n, "what is no call is left out of tool_calls")
	}
}

// isNoCall reports whether an element of tool_calls is no call: it is no object, or has no id and calls nothing.
func isNoCall(element []byte) bool {
	tool := valueOf(element, "function")
	if tool == nil || tool[0] != '{' {
		tool = valueOf(element, "custom")
	}
	return element[0] != '{' || isVoid(element, "id") && callsNothing(tool)
}

// callsNothing reports whether a function or a custom tool has neither a name nor arguments.
func callsNothing(tool []byte) bool {
	return isVoid(tool, "name") && isVoid(tool, "arguments") && isVoid(tool, "input")
}

// isVoid reports whether a member is missing, null or an empty text.
func isVoid(object []byte, name string) bool {
	value := valueOf(object, name)
	return value == nil || string(value) == `""`
}

// fitTypes gives calls the type that the provider requires.
func (r *repairer) fitTypes(n *Message) {
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if p.Kind != Call || !r.own(p) || !isMistyped(p.Raw) {
			continue
		}
		kind := rawjson.Quote(nil, []byte(callType(p.Raw)))
		p.Raw, n.Edited = setMember(p.Raw, "type", kind), true
		r.repaired("V-C11", "call_typed", n, "call %q has the type %s", p.CallID, kind)
	}
}

// callType returns the type that a call of tool_calls has by what is in it, "" for a function_call.
func callType(call []byte) string {
	switch {
	case member(call, "function") != Span{}:
		return "function"
	case member(call, "custom") != Span{}:
		return "custom"
	}
	return ""
}

// isMistyped reports whether a call of tool_calls has not the type that it must have. Moonshot's own tools have one of
// their own.
func isMistyped(call []byte) bool {
	want, kind := callType(call), stringMember(call, "type")
	return want != "" && kind != want && !(want == "function" && kind == "builtin_function")
}

// counts checks V-C10.
func (c *checker) counts() {
	for i := range c.messages {
		if n := c.messages[i].count(Call); n > c.rule.limits["calls"] {
			c.report(i, "the message has %d calls", n)
		}
	}
	if n := len(c.messages); c.server.MaxMessages > 0 && n > c.rule.limits["messages"] {
		c.report(n-1, "there are %d messages", n)
	}
}

// callsTyped checks V-C11.
func (c *checker) callsTyped() {
	for i, p := range c.parts(Call) {
		if call := c.raw(i, p); isMistyped(call) {
			c.report(i, "call %q has the type %q", p.CallID, stringMember(call, "type"))
		}
	}
	for i, body := range c.bodies {
		for call := range elementsOf(body, "tool_calls") {
			if isNoCall(call) {
				c.report(i, "there is no call in tool_calls: %s", call)
			}
		}
	}
}

// saysSound reports whether a message is what the assistant said as a sound, which is content.
func (s *scanner) saysSound(v *object) bool {
	return s.facts.Role == "assistant" && s.is(v.at("audio"), '{')
}

// hasSound reports whether a message came as such a one.
func hasSound(n *Message) bool {
	return n.Format == session.OpenAIChat && n.Role == Assistant && member(n.Raw, "audio") != (Span{})
}
