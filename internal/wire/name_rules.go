package wire

import (
	"github.com/varve-dev/varve/internal/session"
)

// toolNames checks V-C7, V-R6, V-A14, V-G6 and V-U9. Of a message of Chat Completions that is a result it checks the
// member name.
func (c *checker) toolNames() {
	names := c.server.Tools
	names.Max = c.rule.limits[string(c.server.Dialect)]
	for i, p := range c.parts(Call, Result) {
		if c.isNamed(i, p) && !names.Take(p.Name) {
			c.report(i, "%q cannot be the name of a tool", p.Name)
		}
	}
}

// isNamed reports whether a call or a result has the name of its tool.
func (c *checker) isNamed(message int, p *Part) bool {
	switch {
	case p.Kind == Call || c.format == session.Gemini:
		return true
	case c.format == session.OpenAIChat:
		return stringLiteralAt(c.bodies[message], "name") != nil
	}
	return false
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
