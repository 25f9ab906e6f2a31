package wire

import (
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/session"
)

// chatContent checks V-C3. "" is content, and so is an array of any parts.
func (c *checker) chatContent() {
	for i := range c.messages {
		m := &c.messages[i]
		switch {
		case m.Flags&FlagEmptyArray != 0:
			c.report(i, "content is an array without parts")
		case m.Flags&FlagResultNotText != 0:
			c.report(i, "the content of a tool message is a string or an array of text parts")
		case contentless(m):
			c.report(i, "the message has no content")
		}
	}
}

func contentless(m *Facts) bool {
	if forResult(m.Role) {
		return len(m.Parts) == 1 && m.Parts[0].Value == Span{}
	}
	return m.Flags&FlagEmpty != 0
}

// idLength checks V-C4.
func (c *checker) idLength() {
	limit := c.rule.limits["id"]
	for i, p := range c.parts(Call, Result) {
		if utf8.RuneCountInString(p.CallID) > limit && !madeID(p) && !c.server.IDAny {
			c.report(i, "the id %q has more than %d characters", p.CallID, limit)
		}
	}
}

// knownRoles checks V-C5. Anthropic's rule for a system message that is not at the beginning is V-A12.
func (c *checker) knownRoles() {
	for i := c.head; i < len(c.messages); i++ {
		m := &c.messages[i]
		system := c.format == session.Anthropic && m.Flags&FlagPinned != 0
		if !system && c.hasRole(i) && !c.knows(m.Role) {
			c.report(i, "role %q must be one of %s", m.Role, strings.Join(c.rule.words[c.format], ", "))
		}
	}
}

// hasRole reports whether a message has a role: of the items of the Responses API, only messages do.
func (c *checker) hasRole(message int) bool {
	body := c.bodies[message]
	return c.format != session.OpenAIResponses || isMessageItem(body) && member(body, "role") != Span{}
}

// mistral checks V-M1. The last message may be one of the assistant that the model must continue.
func (c *checker) mistral() {
	if c.server.IDLength == 0 {
		return
	}
	length := c.rule.limits["id"]
	for i, p := range c.parts(Call, Result) {
		if !madeID(p) && !isAlphanumeric(p.CallID, length) {
			c.report(i, "the id %q is not made of %d letters and digits", p.CallID, length)
		}
	}
	last := c.last()
	if last < 0 && c.head > 0 {
		c.report(c.head-1, "nothing follows the messages of the system")
	}
	if last < 0 || c.messages[last].Role == "user" || forResult(c.messages[last].Role) {
		return
	}
	if prefix := valueOf(c.bodies[last], "prefix"); !c.inFlight() && string(prefix) != "true" {
		c.report(last, "the last message is neither the user's nor a tool's")
	}
}

// reasoningGoesOn checks V-R3. The other half of the provider's rule, that a call which reasoning led to is not sent
// without that reasoning ("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item:
// 'rs_1'."), is not to be seen in a list: a call of a model that did not reason looks the same. Who takes items out
// of a list has to keep or drop them as one group.
func (c *checker) reasoningGoesOn() {
	for i := c.head; i < len(c.messages); i++ {
		item := c.bodies[i]
		if !isType(item, "reasoning") {
			continue
		}
		switch {
		case i+1 == len(c.messages) || c.messages[i+1].Role != "assistant":
			c.report(i, "no item of the model follows its reasoning")
		case byID(item) && member(c.bodies[i+1], "id") == (Span{}):
			c.report(i, "the item after the reasoning may not belong to it: it has no id")
		}
	}
}

// callLengths checks V-R4.
func (c *checker) callLengths() {
	for i, p := range c.parts(Call, Result) {
		if n := utf8.RuneCountInString(p.CallID); n == 0 || n > c.rule.limits["id"] {
			c.report(i, "call_id %q has %d characters, not 1 to %d", p.CallID, n, c.rule.limits["id"])
		}
	}
}
