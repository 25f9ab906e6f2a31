package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// callTurns checks V-G1.
func (c *checker) callTurns() {
	for i := c.head; i < len(c.messages); i++ {
		m := &c.messages[i]
		if m.count(Call) > 0 && (i == c.head || c.messages[i-1].Role != "user") {
			c.report(i, "calls are neither after a text of the user nor after responses")
		}
		if m.count(Result) > 0 && (i == c.head || c.messages[i-1].count(Call) == 0) {
			c.report(i, "responses are not after calls")
		}
	}
}

func (m *Facts) count(kind Kind) (n int) {
	for i := range m.Parts {
		if m.Parts[i].Kind == kind {
			n++
		}
	}
	return n
}

// responseCount checks V-G2. Results of the last calls may be still to come.
func (c *checker) responseCount() {
	for i := c.head; i < len(c.messages); i++ {
		m := &c.messages[i]
		if n := m.count(Result); n > 0 && n < len(m.Parts) {
			c.report(i, "a content of responses contains something else")
		}
		if m.count(Call) > 0 {
			c.responsesTo(i)
		}
	}
}

// responsesTo compares the calls of a content with the responses of the next one.
func (c *checker) responsesTo(i int) {
	calls, next := &c.messages[i], &Facts{}
	if i < c.last() {
		next = &c.messages[i+1]
	}
	want, got := calls.count(Call), next.count(Result)
	atEnd := i == c.last() || i+1 == c.last() && got > 0
	if got != want && !(got < want && atEnd && !c.settled()) {
		c.report(i, "%d calls have %d responses", want, got)
		return
	}
	open := map[string]int{}
	for j := range calls.Parts {
		if p := &calls.Parts[j]; p.Kind == Call {
			open[p.Name]++
		}
	}
	for j := range next.Parts {
		if p := &next.Parts[j]; p.Kind == Result {
			if open[p.Name]--; open[p.Name] < 0 {
				c.report(i+1, "the response of %q answers no call", p.Name)
			}
		}
	}
}

// callsSigned checks V-G3.
func (c *checker) callsSigned() {
	if provider.IsOlderGemini(c.Model) {
		return
	}
	for i := c.currentTurn(); i < len(c.messages); i++ {
		first := true
		for _, p := range c.partsOf(run{start: i, end: i + 1}) {
			if p.Kind != Call {
				continue
			}
			signature := signatureOf(c.raw(i, p))
			switch {
			case first && signature == "":
				c.report(i, "call %q is the first of its content and has no thoughtSignature", p.Name)
			case !first && signature == standIn:
				c.report(i, "call %q is not the first of its content, but has the stand-in for a thoughtSignature",
					p.Name)
			}
			first = false
		}
	}
}

// currentTurn returns the index of the last content in which the user says something.
func (c *checker) currentTurn() int {
	for i := c.last(); i > c.head; i-- {
		if c.messages[i].Role == "user" && c.messages[i].count(Result) == 0 {
			return i
		}
	}
	return c.head
}

// contents checks V-G4.
func (c *checker) contents() {
	for i := c.head; i < len(c.messages); i++ {
		if role := c.messages[i].Role; !provider.Of(c.format).KnowsRole(role) {
			c.report(i, "role %q is neither user nor model", role)
		}
		count := 0
		for part := range elementsOf(c.bodies[i], "parts") {
			c.part(i, part)
			count++
		}
		if count == 0 {
			c.report(i, "the content has no parts")
		}
	}
	c.beginsWithUser()
	if last := c.last(); last >= 0 && c.messages[last].Role != "user" && !c.inFlight() {
		c.report(last, "the last content is not the user's")
	}
}

func (c *checker) part(i int, part []byte) {
	if part[0] != '{' {
		c.report(i, "a part is not an object")
		return
	}
	data, unknown := partCount(part, c.knows)
	switch {
	case data > 1:
		c.report(i, "a part has %d kinds of data", data)
	case data+unknown == 0:
		c.report(i, "a part has no data")
	case string(valueOf(part, "text")) == `""` && signatureOf(part) == "":
		c.report(i, "a text is empty")
	}
	for key, value := range rawjson.Members(part, 0) {
		if wrong := badFunction(key.Of(part), value.Of(part)); wrong != "" && c.knows(string(unquoted(key.Of(part)))) {
			c.report(i, "%s: %s", key.Of(part), wrong)
		}
	}
}
