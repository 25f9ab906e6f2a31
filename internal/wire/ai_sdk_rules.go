package wire

import (
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// toolStates checks V-U1. The library looks at no tool parts but the assistant's, and wants no result of a call that
// the provider itself executes: vercel/ai, convertToLanguageModelPrompt.
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
	if string(member(part, "providerExecuted").Of(part)) == "true" {
		return
	}
	if state := stringMember(part, "state"); !c.knows(state) {
		c.report(i, "tool call %q is in the state %q, which is not final", stringMember(part, "toolCallId"), state)
	}
}

// uiTexts checks V-U3.
func (c *checker) uiTexts() {
	if c.server.Dialect == "" {
		return
	}
	for i := range c.messages {
		m := &c.messages[i]
		switch {
		case c.server.NoEmptyText && slices.ContainsFunc(m.Parts, func(p Part) bool { return c.isVoidText(i, &p) }):
			c.report(i, "a text is empty, or nothing but white space")
		case m.Role != "assistant" && !slices.ContainsFunc(m.Parts, m.isSaid):
			c.report(i, "the message has nothing that the provider gets")
		}
	}
}

// isVoidText reports whether a part is a text of white space alone, but for one that holds Google's signature.
func (c *checker) isVoidText(message int, p *Part) bool {
	if p.Kind != Text || !blank(p.Value.Of(c.bodies[message])) {
		return false
	}
	kept := valueOf(valueOf(c.raw(message, p), "providerMetadata"), googleOwner)
	return c.server.Package != googleOwner || !isSigned(valueOf(kept, "thoughtSignature"))
}

// isSaid reports whether a part of a UIMessage of the user or the system is sent to the provider.
func (m *Facts) isSaid(p Part) bool {
	empty := p.Value.End-p.Value.Start <= len(`""`)
	return p.Kind == Text && !empty || m.Role == "user" && (p.Kind == Image || p.Kind == File)
}

// uiFirst checks V-U4.
func (c *checker) uiFirst() {
	if c.server.FirstUser {
		c.beginsWithUser()
	}
}

// uiIDs checks V-U5.
func (c *checker) uiIDs() {
	if c.server.Dialect == "" {
		return
	}
	for i, p := range c.parts(Call) {
		fits := c.server.FitsID(p.CallID)
		if n := c.server.IDLength; n > 0 {
			fits = isAlphanumeric(p.CallID, n)
		}
		if !fits {
			c.report(i, "the provider does not take the id %q", p.CallID)
		}
	}
}

// uiInputs checks V-U6.
func (c *checker) uiInputs() {
	if c.server.Dialect == "" {
		return
	}
	for i, p := range c.parts(Call) {
		switch {
		case p.Value == (Span{}), c.bodies[i][p.Value.Start] == 'n':
			c.report(i, "call %q has no input", p.CallID)
		case c.server.ObjectInputs && c.bodies[i][p.Value.Start] != '{':
			c.report(i, "the input of call %q is not an object", p.CallID)
		}
	}
}

// uiLast checks V-U8. The results of a message of the assistant are sent after it.
func (c *checker) uiLast() {
	if c.bodies == nil {
		return
	}
	c.uiTurnsEnd()
	last := c.last()
	if last < 0 || c.messages[last].Role != "assistant" || c.inFlight() {
		return
	}
	if c.server.EndsWithUser(c.Model) && !endsWithResults(c.bodies[last]) {
		c.report(last, "the last message is the assistant's, which %s does not continue", c.Model)
	}
}

// endsWithResults reports whether the last thing that the AI SDK makes of a message is results.
func endsWithResults(body []byte) bool {
	steps := Decode(session.AISDK, body)
	return steps[len(steps)-1].Role == Tool
}

// uiCallTurns checks V-U12.
func (c *checker) uiCallTurns() {
	if !c.server.CallsAfterUser {
		return
	}
	spoke := false // the assistant, without a call
	for i := c.head; i < len(c.messages); i++ {
		for _, step := range Decode(session.AISDK, c.bodies[i]) {
			if spoke && step.Role == Assistant && step.has(Call) {
				c.report(i, "calls are neither after the user nor after results")
			}
			spoke = step.Role == Assistant && !step.has(Call)
		}
	}
}
