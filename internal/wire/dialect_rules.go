package wire

import (
	"slices"
)

// rolesFit checks V-D2.
func (c *checker) rolesFit() {
	for i := range c.messages {
		m := &c.messages[i]
		if chat.KnowsRole(m.Role) && !c.server.KnowsRole(m.Role) {
			c.report(i, "the server does not know the role %q", m.Role)
		}
		calls := m.Role == "assistant" && member(c.bodies[i], "function_call") != (Span{})
		if calls && !c.server.KnowsRole("function") {
			c.report(i, "the server does not know function_call")
		}
	}
}

// systemLeads checks V-D3 and V-U7.
func (c *checker) systemLeads() {
	if c.server.OneSystem && c.head > 1 {
		c.report(1, "there are %d system messages, and not one", c.head)
	}
	for i := c.head; i < len(c.messages) && c.server.SystemFirst; i++ {
		if c.messages[i].Flags&FlagPinned != 0 {
			c.report(i, "a message of role %q is after others", c.messages[i].Role)
		}
	}
}

// membersFit checks V-D4.
func (c *checker) membersFit() {
	if c.server.Members == nil {
		return
	}
	for i, body := range c.bodies {
		if names := unknownMembers(body, c.server.Members, forResult(c.messages[i].Role)); len(names) > 0 {
			c.report(i, "the server does not know the members %q", names)
		}
		for _, list := range []string{"content", "tool_calls"} {
			for element := range elementsOf(body, list) {
				for _, in := range strictIntruders(element, list == "tool_calls") {
					c.report(i, "the server does not know the member %q in %s", in.name, list)
				}
			}
		}
	}
}

// toolsFit checks V-D8.
func (c *checker) toolsFit() {
	for i, body := range c.bodies {
		for call := range elementsOf(body, "tool_calls") {
			if c.server.NoCustom && valueOf(call, "custom") != nil {
				c.report(i, "the server has no custom tools")
			}
		}
	}
}

// inputsFit checks V-D11.
func (c *checker) inputsFit() {
	for i, p := range c.parts(Call) {
		call := c.raw(i, p)
		if c.server.ObjectInputs && valueOf(call, "custom") == nil && !isObjectText(rawArguments(call)) {
			c.report(i, "the arguments of call %q are no object", p.CallID)
		}
	}
}

// mediaFit checks V-D9.
func (c *checker) mediaFit() {
	for i, body := range c.bodies {
		for block := range elementsOf(body, "content") {
			if hiddenBlock(c.server, block) {
				c.report(i, "the server shows no %s", stringMember(block, "type"))
			}
		}
	}
}

// contentFits checks V-D5.
func (c *checker) contentFits() {
	for i, body := range c.bodies {
		array := isArray(body, member(body, "content"))
		if array && slices.Contains(c.server.Texts, c.messages[i].Role) {
			c.report(i, "content is an array, and not a string")
		}
	}
}

// rolesAlternate checks V-D6.
func (c *checker) rolesAlternate() {
	for i := c.head + 1; i < len(c.messages) && c.server.Alternates; i++ {
		if c.messages[i].Role == c.messages[i-1].Role {
			c.report(i, "two messages in a row have the role %q", c.messages[i].Role)
		}
	}
}

// toolsAnswered checks V-D7.
func (c *checker) toolsAnswered() {
	for i := c.head + 1; i < len(c.messages) && c.server.AnswersTools; i++ {
		role := c.messages[i].Role
		if forResult(c.messages[i-1].Role) && !forResult(role) && role != "assistant" {
			c.report(i, "a message of role %q is directly after a result", role)
		}
	}
}
