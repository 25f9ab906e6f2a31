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
	if !r.isAnthropic() || r.provider.Unsigned {
		return list
	}
	for i := len(list) - 2; i >= 0; i-- {
		n := &list[i]
		if n.Role != Assistant || list[i+1].Role == Assistant || callsInTurn(list, i) {
			continue
		}
		if r.dropLastThoughts(n); n.Edited && r.saysNothing(n) {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

// saysNothing reports whether nothing of a message of the assistant is sent.
func (r *repairer) saysNothing(n *Message) bool {
	return len(n.Blocks) == 0 || r.target == session.AISDK && sender{r.provider}.sendsNone(n)
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

// uiTurnsEnd checks the part of V-U8 that is about thinking.
func (c *checker) uiTurnsEnd() {
	behind := sender{c.server}
	for i := c.head; i < len(c.messages) && c.server.Package == anthropicOwner; i++ {
		goesOn := i < c.last() && c.messages[i+1].Role == "assistant"
		if c.messages[i].Role == "assistant" && !goesOn && behind.endsInThought(Decode(c.format, c.bodies[i])) {
			c.report(i, "the message ends in thinking")
		}
	}
}

// endsInThought reports whether the last that Anthropic gets of the steps of a message is a thought, and no step of the
// end calls tools.
func (s sender) endsInThought(steps []Message) bool {
	n := &steps[len(steps)-1]
	if n.Role != Assistant || callsInTurn(steps, len(steps)-1) {
		return false
	}
	for _, p := range slices.Backward(n.Blocks) {
		if s.sends(&p) {
			return p.Kind == Reasoning
		}
	}
	return false
}
