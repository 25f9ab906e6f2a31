package wire

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/wire/provider"
)

// resultsFirst checks V-A3.
func (c *checker) resultsFirst() {
	for _, t := range c.runs {
		others := false
		for i, p := range c.partsOf(t) {
			if p.Kind == Result && others {
				c.report(i, "result %q is after other content", p.CallID)
			}
			others = others || p.Kind != Result
		}
	}
}

// uniqueIDs checks V-A4.
func (c *checker) uniqueIDs() {
	seen := map[string]bool{}
	for i := range c.calls {
		call := &c.calls[i]
		if !provider.PlainID(call.id) || utf8.RuneCountInString(call.id) > c.rule.limits["id"] {
			c.report(call.message, "call id %q is not 1 to %d letters, digits, _ and -", call.id, c.rule.limits["id"])
		}
		if seen[call.id] {
			c.report(call.message, "call id %q was used before", call.id)
		}
		seen[call.id] = true
	}
	for i := range c.results {
		if r := &c.results[i]; r.again {
			c.report(r.message, "call %q is answered twice", r.id)
		}
	}
}

// notEmpty checks V-A5.
func (c *checker) notEmpty() {
	for i := c.head; i < len(c.messages); i++ {
		m := &c.messages[i]
		switch {
		case m.Flags&FlagEmptyText != 0, c.bodies != nil && hasBlank(m, c.bodies[i]):
			c.report(i, "a text is empty, or nothing but white space")
		case m.Flags&FlagEmpty != 0 && !(m.Role == "assistant" && i == c.last()) && !c.isSetting(i):
			c.report(i, "the message has no content")
		}
	}
}

func hasBlank(m *Facts, body []byte) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Kind == Text && blank(p.Value.Of(body)) })
}

// lastMessage checks V-A6. A turn that waits for results is not a prefill, nor is one in which the provider stopped
// while its own tools ran.
func (c *checker) lastMessage() {
	c.turnsEnd()
	last := c.last()
	for last >= c.head && c.isSetting(last) {
		last--
	}
	if last < c.head || c.messages[last].Role != "assistant" || c.inFlight() {
		return
	}
	parts := c.messages[last].Parts
	end := Part{}
	if len(parts) > 0 {
		end = parts[len(parts)-1]
	}
	if provider.RefusesPrefill(c.Model) && !c.pauses(last) {
		c.report(last, "the last message is the assistant's, which %s does not continue", c.Model)
	}
	if end.Kind == Text && endsInSpace(end.Value.Of(c.bodies[last])) {
		c.report(last, "the final text ends in white space")
	}
	if end.Kind == Reasoning {
		c.report(last, "the last message ends in thinking")
	}
}

func endsInSpace(literal []byte) bool {
	text := unquoted(literal)
	return len(bytes.TrimRight(text, " \t\r\n")) < len(text)
}

// bounds checks V-A10.
func (c *checker) bounds() {
	if n := len(c.messages) - c.head; n > c.rule.limits["messages"] {
		c.report(c.last(), "there are %d messages, the limit is %d", n, c.rule.limits["messages"])
	}
	c.beginsWithUser()
	for i, p := range c.parts(Opaque) {
		block := c.raw(i, p)
		switch {
		case emptyCompaction(block):
			c.report(i, "the content of a compaction is empty")
		case i > c.head && isSummary(block) && isSigned(valueOf(block, "signature")):
			c.report(i, "a compaction with a signature is not in the first message")
		}
	}
}

// beginsWithUser reports a list whose first message is not the user's, or that has nothing but the head.
func (c *checker) beginsWithUser() {
	mayLead := func(body []byte) bool {
		return leads(c.format, c.server) && compactor(c.format, body) == anthropicOwner
	}
	switch {
	case c.last() >= 0 && c.messages[c.head].Role != "user" && !mayLead(c.bodies[c.head]):
		c.report(c.head, "the first message is not the user's")
	case c.last() < 0 && c.head > 0:
		c.report(c.head-1, "nothing follows the messages of the system")
	}
}

// toolsDefined checks V-A11. Which tools those are does not matter: a call of one that is gone is taken.
func (c *checker) toolsDefined() {
	if c.Tools == nil || len(c.Tools) > 0 {
		return
	}
	for i, p := range c.parts(Call, Result) {
		c.report(i, "%s %q needs a request that defines tools", p.Kind, p.CallID)
		return
	}
}

// systemFirst checks V-A12.
func (c *checker) systemFirst() {
	for i := c.head; i < len(c.messages); i++ {
		if c.messages[i].Flags&FlagPinned != 0 && !c.systemPlaced(i) {
			c.report(i, "a message of role %q is after others", c.messages[i].Role)
		}
	}
}

// thinkingSealed checks V-A7. A list does not show whether thinking came back unmodified, only whether it is complete.
// Where it is does not matter: the models think between calls, and want that order back
// (platform.claude.com/docs/en/build-with-claude/extended-thinking, Interleaved thinking).
func (c *checker) thinkingSealed() {
	for i, p := range c.parts(Reasoning) {
		if !c.server.Unsigned && !sealed(c.raw(i, p)) {
			c.report(i, "thinking has no signature")
		}
	}
	for i := range c.messages {
		m := &c.messages[i]
		if m.Role == "assistant" && m.count(Reasoning) == 0 && c.server.MustReason(c.Model, m.count(Call) > 0) {
			c.report(i, "the message has no thinking, which the server requires")
		}
	}
}

// sealed reports whether thinking has a signature, or is encrypted.
func sealed(block []byte) bool {
	return isSigned(valueOf(block, "signature")) || isSigned(valueOf(block, "data"))
}

// thinkingOwn checks V-A8.
func (c *checker) thinkingOwn() {
	if c.Model == "" || c.Author == "" || provider.BaseModel(c.Model) == provider.BaseModel(c.Author) {
		return
	}
	for i, p := range c.parts(Reasoning) {
		if c.server.Unsigned && c.bodies != nil && !sealed(c.raw(i, p)) {
			continue // which no one checks
		}
		c.report(i, "thinking of %s is sent to %s", c.Author, c.Model)
	}
}

// cacheMarks checks V-A9. The head counts, for its blocks become the request's system.
func (c *checker) cacheMarks() {
	marks, short := 0, false
	limit := c.rule.limits["cache_control"]
	for i := range c.messages {
		if !bytes.Contains(c.bodies[i], []byte("cache_control")) {
			continue
		}
		for block := range elementsOf(c.bodies[i], "content") {
			if _, late := shortMarks(block, &short); late {
				c.report(i, "a cache_control of 1h is behind one of 5m")
			}
		}
		for block := range blocksInside(c.bodies[i]) {
			if member(block, "cache_control") == (Span{}) {
				continue
			}
			if marks++; marks == limit+1 {
				c.report(i, "this is the %dth block with cache_control", marks)
			}
			if text := member(block, "text"); string(text.Of(block)) == `""` {
				c.report(i, "an empty text has cache_control")
			}
		}
	}
}
