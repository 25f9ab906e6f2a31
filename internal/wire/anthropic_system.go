package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Some models of Anthropic's take messages of the system between others: each directly behind the user's turn, at the
// end or before a turn of the assistant, with texts alone
// (platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages).

func (r *repairer) takesSystem() bool {
	return provider.TakesSystem(r.target, r.provider.Dialect, r.Model)
}

// settleSystem makes notes of the user of those messages of the system that the API would refuse where they are.
func (r *repairer) settleSystem(list []Message) []Message {
	if !r.takesSystem() {
		return list
	}
	head := pinnedHead(list)
	kept := list[:head]
	for i := head; i < len(list); i++ {
		n := list[i]
		ends := i+1 == len(list) || list[i+1].Role == Assistant
		switch {
		case n.Role != System:
		case len(n.Blocks) == 0:
			r.repaired("V-A5", "empty_message", &n, "the message is empty, and is left out")
			continue
		case !ends || n.count(Text) < len(n.Blocks) || !isUsers(kept[head:]):
			r.repaired("V-A12", "system_as_user", &n,
				"a message of the system is not between the user's and the assistant's: it is a note of the user")
			n.makeUser("[System] ")
		case stringMember(n.Raw, "role") != "system" || n.Format != session.Anthropic:
			n.Edited = true
		}
		kept = append(kept, n)
	}
	return kept
}

// isUsers reports whether a list ends in a message of the user.
func isUsers(list []Message) bool {
	return len(list) > 0 && (list[len(list)-1].Role == User || list[len(list)-1].Role == Tool)
}

// systemPlaced reports whether a message of the system is where the API takes it.
func (c *checker) systemPlaced(i int) bool {
	if !provider.TakesSystem(c.format, c.server.Dialect, c.Model) || c.messages[i].Role != "system" {
		return false
	}
	other := func(p Part) bool { return p.Kind != Text }
	behind := i > c.head && c.messages[i-1].Role == "user"
	ends := i == c.last() || c.messages[i+1].Role == "assistant"
	return behind && ends && !slices.ContainsFunc(c.messages[i].Parts, other)
}
