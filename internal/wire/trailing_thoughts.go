package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
)

// Anthropic refuses a turn of the assistant that ends in thinking wherever it is: "messages.1: The final block in an
// assistant message cannot be `thinking`." (tailcallhq/forgecode#2107, #3073, NousResearch/hermes-agent#11098). Such
// turns are answers that were cut off, and those whose calls have left. What the last message of a list ends in is a
// matter of ends.

// dropTrailing leaves out the thoughts that a turn before the last message ends in, and the messages of nothing else.
func (r *repairer) dropTrailing(list []Message) []Message {
	if r.target != session.Anthropic || r.provider.Unsigned {
		return list
	}
	for i := len(list) - 2; i >= 0; i-- {
		n := &list[i]
		if n.Role != Assistant || list[i+1].Role == Assistant || callsInTurn(list, i) {
			continue
		}
		if r.dropLastThoughts(n); n.Edited && len(n.Blocks) == 0 {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

// callsInTurn reports whether a turn of the assistant that ends with message i calls tools: then it was not cut off.
func callsInTurn(list []Message, i int) bool {
	for ; i >= 0 && list[i].Role == Assistant; i-- {
		if list[i].has(Call) {
			return true
		}
	}
	return false
}

// turnsEnd checks the part of V-A6 that is about turns before the last message.
func (c *checker) turnsEnd() {
	calls := false
	for i := c.head; i < c.last() && !c.server.Unsigned; i++ {
		m := &c.messages[i]
		if m.Role != "assistant" {
			calls = false
			continue
		}
		calls = calls || m.count(Call) > 0
		ends := len(m.Parts) > 0 && m.Parts[len(m.Parts)-1].Kind == Reasoning
		if ends && !calls && c.messages[i+1].Role != "assistant" {
			c.report(i, "the message ends in thinking")
		}
	}
}
