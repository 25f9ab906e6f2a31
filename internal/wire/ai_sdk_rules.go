package wire

import (
	"strings"
)

// toolStates checks V-U1. The library looks at no tool parts but the assistant's.
func (c *checker) toolStates() {
	for i := c.head; i < len(c.messages); i++ {
		if i == c.last() && !c.settled() {
			return
		}
		if c.messages[i].Role != "assistant" {
			continue
		}
		for part := range elementsOf(c.bodies[i], "parts") {
			c.toolState(i, part)
		}
	}
}

func (c *checker) toolState(i int, part []byte) {
	kind := stringMember(part, "type")
	if !strings.HasPrefix(kind, "tool-") && kind != "dynamic-tool" {
		return
	}
	if state := stringMember(part, "state"); !c.knows(state) {
		c.report(i, "tool call %q is in the state %q, which is not final", stringMember(part, "toolCallId"), state)
	}
}
