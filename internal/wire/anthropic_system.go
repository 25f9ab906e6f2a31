package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Some models of Anthropic's take messages of the system between others: each directly behind the user's turn, at the
// end or before a turn of the assistant, with nothing but texts and changes of tools
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
	kept := list[:head:head]
	var late []Block // changes of tools that wait for a place
	for i := head; i < len(list); i++ {
		n := list[i]
		ends := i+1 == len(list) || list[i+1].Role == Assistant
		switch {
		case n.Role != System:
		case len(n.Blocks) == 0:
			r.repaired("V-A5", "empty_message", &n, "the message is empty, and is left out")
			continue
		case !ends || slices.ContainsFunc(n.Blocks, isNoSystem) || !isUsers(kept[head:]):
			late = append(late, n.takeChanges()...)
			r.repaired("V-A12", "system_as_user", &n, "a message of the system is not between the user's and the "+
				"assistant's: it is a note of the user, and changes of tools follow where they may be")
			if len(n.Blocks) == 0 {
				break
			}
			n.makeUser("[System] ")
		case len(late) > 0:
			n.Blocks, n.Edited = append(late, n.Blocks...), true
			late = nil
		case stringMember(n.Raw, "role") != "system" || n.Format != session.Anthropic:
			n.Edited = true
		}
		if len(n.Blocks) > 0 || n.Role != System {
			kept = append(kept, n)
		}
		if len(late) > 0 && ends && isUsers(kept[head:]) {
			kept = append(kept, Message{Role: System, Blocks: late, Edited: true})
			late = nil
		}
	}
	return kept
}

// takeChanges takes the changes of tools out of a message.
func (n *Message) takeChanges() (changes []Block) {
	var kept []Block
	for _, p := range n.Blocks {
		if p.Kind == Opaque && isToolChange(p.Raw) {
			changes = append(changes, p)
		} else {
			kept = append(kept, p)
		}
	}
	n.Blocks = kept
	return changes
}

// isNoSystem reports whether a message of the system must not have a block.
func isNoSystem(p Block) bool { return p.Kind != Text && !(p.Kind == Opaque && isToolChange(p.Raw)) }

// isUsers reports whether a list ends in a message of the user.
func isUsers(list []Message) bool {
	return len(list) > 0 && (list[len(list)-1].Role == User || list[len(list)-1].Role == Tool)
}

// systemPlaced reports whether a message of the system is where the API takes it.
func (c *checker) systemPlaced(i int) bool {
	if !provider.TakesSystem(c.format, c.server.Dialect, c.Model) || c.messages[i].Role != "system" {
		return false
	}
	other := func(p Part) bool { return p.Kind != Text && !(p.Kind == Opaque && isToolChange(c.raw(i, &p))) }
	behind := i > c.head && c.messages[i-1].Role == "user"
	ends := i == c.last() || c.messages[i+1].Role == "assistant"
	return behind && ends && !slices.ContainsFunc(c.messages[i].Parts, other)
}
