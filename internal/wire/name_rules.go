package wire

import (
	"github.com/varve-dev/varve/internal/session"
)

// toolNames checks V-C7, V-R6, V-A14, V-G6 and V-U11.
func (c *checker) toolNames() {
	names := c.server.Tools
	names.Max = c.rule.limits[string(c.server.Dialect)]
	for i, p := range c.parts(Call, Result, Opaque) {
		if name, named := c.toolName(i, p); named && !names.Take(name) {
			c.report(i, "%q cannot be the name of a tool", name)
		}
	}
	for i := c.head; i < len(c.messages) && c.format == session.OpenAIChat; i++ {
		if name, ok := twinName(c.bodies[i]); ok && !names.Take(name) {
			c.report(i, "%q cannot be the name of a function", name)
		}
	}
}

// toolName returns the name of a tool that a part has: of a result only where the format has it there, too.
func (c *checker) toolName(message int, p *Part) (name string, named bool) {
	switch {
	case p.Kind == Opaque && c.format == session.AISDK:
		return uiToolName(c.raw(message, p))
	case p.Kind == Call, p.Kind == Result && c.format == session.Gemini:
		return p.Name, true
	case p.Kind == Result && c.format == session.OpenAIChat:
		return p.Name, stringLiteralAt(c.bodies[message], "name") != nil
	}
	return "", false
}

// speakers checks V-C8.
func (c *checker) speakers() {
	names := c.server.Speakers
	names.Max = c.rule.limits["name"]
	for i, body := range c.bodies {
		literal := stringLiteralAt(body, "name")
		if literal == nil || forResult(c.messages[i].Role) {
			continue
		}
		if name := nameText(literal); !names.Take(name) {
			c.report(i, "%q cannot be the name of a speaker", name)
		}
	}
}

// stringLiteralAt returns a member that is a text, else nil.
func stringLiteralAt(object []byte, name string) []byte {
	if value := valueOf(object, name); value != nil && value[0] == '"' {
		return value
	}
	return nil
}
