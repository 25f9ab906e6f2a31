package wire

import (
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// toolStates checks V-U1. The library looks at no tool parts but the assistant's.
func (c *checker) toolStates() {
	for i := c.head; i < len(c.messages); i++ {
		if i == c.last() && !c.settled() {
			return
		}
		body := c.body(i)
		parts := member(body, "parts")
		if c.messages[i].Role != "assistant" || parts == (Span{}) || body[parts.Start] != '[' {
			continue
		}
		for at := range rawjson.Elements(body, parts.Start) {
			c.toolState(i, at.Of(body))
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
