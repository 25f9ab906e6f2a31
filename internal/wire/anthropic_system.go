package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Some models of Anthropic's take messages of the system between others
// (platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages): each directly behind the user's
// turn, or one of the assistant that ends in a call of the API's own tools, at the end or before a turn of the
// assistant, with nothing but texts and changes of tools. One without content that sets the effort may stand
// anywhere, but beside no other with content (platform.claude.com/docs/en/build-with-claude/effort-per-message).

func (r *repairer) takesSystem() bool {
	return provider.TakesSystem(r.target, r.provider.Dialect, r.Model)
}

// settleSystem makes notes of the user of those messages of the system that the API would refuse where they are.
func (r *repairer) settleSystem(list []Message) []Message {
	if !r.takesSystem() {
		return list
	}
	head := pinnedHead(list)
	list = r.joinSettings(list, head)
	kept := list[:head:head]
	var late []Block // changes of tools that wait for a place
	for i := head; i < len(list); i++ {
		n := list[i]
		ends := i+1 == len(list) || list[i+1].Role == Assistant
		switch {
		case n.Role != System || n.isSetting():
		case len(n.Blocks) == 0:
			r.repaired("V-A5", "empty_message", &n, "the message is empty, and is left out")
			continue
		case !ends || slices.ContainsFunc(n.Blocks, isNoSystem) || !mayPrecedeSystem(kept[head:]):
			if config := n.setting(); config != nil {
				kept = append(kept, Message{Format: r.target, Role: System, Extra: config, Edited: true})
			}
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
		if len(n.Blocks) > 0 || n.Role != System || n.isSetting() {
			kept = append(kept, n)
		}
		if len(late) > 0 && ends && mayPrecedeSystem(kept[head:]) {
			kept = append(kept, Message{Role: System, Blocks: late, Edited: true})
			late = nil
		}
	}
	return kept
}

// setting returns the member of a message of the system that sets the effort, nil if it has none.
func (n *Message) setting() []byte {
	config := appendMembers(nil, n.extras(), true, []string{"output_config"})
	if n.Format != session.Anthropic || !setsEffort(wrap(nil, "{", config, "}")) {
		return nil
	}
	return config
}

func setsEffort(message []byte) bool {
	return stringMember(valueOf(message, "output_config"), "effort") != ""
}

// isSetting reports whether a message of the system sets the effort, and has no content.
func (n *Message) isSetting() bool {
	return n.Role == System && len(n.Blocks) == 0 && n.setting() != nil
}

// joinSettings gives settings to the message of the system with content that is beside them.
func (r *repairer) joinSettings(list []Message, head int) []Message {
	kept := list[:head:head]
	for i := range list[head:] {
		n := list[head+i]
		last := &n
		if len(kept) > head {
			last = &kept[len(kept)-1]
		}
		if n.Role != System || last.Role != System || n.isSetting() == last.isSetting() {
			kept = append(kept, n)
			continue
		}
		r.repaired("V-A12", "messages_joined", &n, "two messages of the system in a row are one")
		said, config := n, n.setting()
		if n.isSetting() {
			said = *last
		}
		if config == nil {
			config = last.setting()
		}
		others := othersOf(said.extras(), "output_config")
		said.Extra, said.Edited = append(separate(others, 0), config...), true
		*last = said
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

// mayPrecedeSystem reports whether a message of the system may follow a list.
func mayPrecedeSystem(list []Message) bool {
	return len(list) > 0 && (list[len(list)-1].Role == User || list[len(list)-1].Role == Tool || endsInPause(list))
}

// systemPlaced reports whether a message of the system is where the API takes it.
func (c *checker) systemPlaced(i int) bool {
	if !provider.TakesSystem(c.format, c.server.Dialect, c.Model) || c.messages[i].Role != "system" {
		return false
	}
	if c.isSetting(i) {
		said := func(i int) bool {
			return i >= c.head && i <= c.last() && c.messages[i].Role == "system" && !c.isSetting(i)
		}
		return !said(i-1) && !said(i+1)
	}
	other := func(p Part) bool { return p.Kind != Text && !(p.Kind == Opaque && isToolChange(c.raw(i, &p))) }
	behind := i > c.head && (c.messages[i-1].Role == "user" || c.pauses(i-1))
	ends := i == c.last() || c.messages[i+1].Role == "assistant"
	return behind && ends && !slices.ContainsFunc(c.messages[i].Parts, other)
}

// isSetting reports whether a message sets the effort, and has no content.
func (c *checker) isSetting(i int) bool {
	m := &c.messages[i]
	return m.Role == "system" && len(m.Parts) == 0 && c.bodies != nil && setsEffort(c.bodies[i])
}

// pauses reports whether a message of the assistant ends in what the API continues behind.
func (c *checker) pauses(i int) bool {
	m := &c.messages[i]
	if m.Role != "assistant" || len(m.Parts) == 0 {
		return false
	}
	end := &m.Parts[len(m.Parts)-1]
	return end.Kind == Opaque && isPause(c.raw(i, end))
}
