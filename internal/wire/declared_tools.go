package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Kimi takes, from K3 on, messages of the system that declare tools which it has from there on, and say nothing:
// {"role":"system","tools":[…]} (docs.morphllm.com/sdk/components/dynamic-tool-loading). Other servers refuse what is
// left of them without the tools (MoonshotAI/kimi-code, isToolDeclarationOnlyMessage).

// declaresTools reports whether a message of Chat Completions declares tools.
func declaresTools(message []byte) bool {
	for range elementsOf(message, "tools") {
		return isSystemRole(stringMember(message, "role"))
	}
	return false
}

func isSystemRole(role string) bool { return role == "system" || role == "developer" }

// declaresTools notes whether the message that is read declares tools, which is content.
func (s *scanner) declaresTools(v *object) {
	at := v.at("tools")
	if s.facts.Flags&FlagPinned == 0 || !s.is(at, '[') || s.body[rawjson.Inside(s.body, at.Start)] == ']' {
		return
	}
	s.filled, s.state = true, true
	s.loose = true // not every server takes it
}

// declares reports whether a message still has tools that it declares.
func (n *Message) declares() bool {
	return n.Role == System && n.Format == session.OpenAIChat && valueOf(n.extras(), "tools") != nil
}

// fitDeclared leaves out the tools that a message declares where the server takes none there, and an empty content
// beside them where it does.
func (r *repairer) fitDeclared(n *Message) {
	if n.Format != session.OpenAIChat || n.Role != System || !declaresTools(n.Raw) {
		return
	}
	switch {
	case !r.provider.DeclaresTools:
		n.Extra, n.Edited = othersOf(n.extras(), "tools"), true
		r.told(r.keepsFormat(n), "V-D12", "members_dropped", n, "the server takes no tools in a message")
	case len(n.Blocks) == 0 && hasMember(n.Raw, "content"):
		n.Edited = true
		r.told(r.keepsFormat(n), "V-D12", "members_dropped", n, "a message that declares tools has no content")
	}
}

// declarationsFit checks V-D12.
func (c *checker) declarationsFit() {
	for i, body := range c.bodies {
		switch {
		case c.server.Dialect == "" || !declaresTools(body):
		case !c.server.DeclaresTools:
			c.report(i, "the server takes no tools in a message")
		case len(c.messages[i].Parts) == 0 && hasMember(body, "content"):
			c.report(i, "a message that declares tools has an empty content")
		}
	}
}
