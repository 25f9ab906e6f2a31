package wire

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// prepare decodes the messages and repairs what is wrong with one alone.
func (r *repairer) prepare() []Message {
	list := make([]Message, 0, len(r.view))
	head := true
	for i := range r.view {
		for _, n := range r.decode(i) {
			head = head && n.Role == System
			list = append(list, r.role(&n, head)...)
		}
	}
	kept := list[:0]
	for i := range list {
		if n := &list[i]; r.clean(n, n.Origin == len(r.view)-1) {
			kept = append(kept, *n)
		}
	}
	return kept
}

// role makes every message one of a role that the target knows, with what that role may say.
func (r *repairer) role(n *Message, head bool) []Message {
	switch {
	case n.Role == System && !head && r.provider.SeparateSystem:
		r.repaired("V-A12", "system_as_user", n, "a system message in the middle is a note of the user")
		n.say("[System] ")
	case n.Role == Other:
		name := string(unquoted(n.Name))
		r.repaired("V-C5", "unknown_role", n, "the message of role %q is a note of the user", name)
		n.Name = nil
		n.say("[" + name + "] ")
	}
	if n.Role != Assistant && n.has(Call) {
		r.callsAsNotes(n)
	}
	if n.Role == Assistant && n.has(Result) {
		return n.splitResults()
	}
	return []Message{*n}
}

// say makes the message one of the user that begins with a text.
func (n *Message) say(before string) {
	n.Role = User
	n.Edited = true
	n.Extra = nil
	if i := slices.IndexFunc(n.Blocks, func(p Block) bool { return p.Kind == Text }); i == 0 {
		n.Blocks[0].Text, n.Blocks[0].Edited = joined(before, n.Blocks[0].Text), true
		return
	}
	first := Block{Kind: Text, Text: rawjson.Quote(nil, bytes.TrimSpace([]byte(before))), Edited: true}
	n.Blocks = append([]Block{first}, n.Blocks...)
}

// callsAsNotes makes texts of calls that are not the assistant's.
func (r *repairer) callsAsNotes(n *Message) {
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Call {
			r.repaired(r.provider.Codes.Unanswered, "call_as_note", n,
				"call %q is not the assistant's: it is a note", p.CallID)
			n.makeText(p, note("call of %s: %s", p.toolName(), p.Value))
		}
	}
}

// splitResults takes the results in an assistant's message out of it.
func (n *Message) splitResults() []Message {
	var list []Message
	for _, p := range n.Blocks {
		role := Assistant
		if p.Kind == Result {
			role = Tool
		}
		if len(list) == 0 || list[len(list)-1].Role != role {
			said := *n
			said.Role = role
			said.Blocks = nil
			said.Edited = true
			list = append(list, said)
		}
		last := &list[len(list)-1]
		last.Blocks = append(last.Blocks, p)
	}
	return list
}

// clean takes out of a message what its provider would refuse, and reports whether anything is left of it. last says
// that it is the view's last message.
func (r *repairer) clean(n *Message, last bool) bool {
	if r.dropsEmptyTexts(n) {
		r.dropEmptyTexts(n)
	}
	r.mend(n)
	if n.Role == User && len(n.Blocks) > 0 && onlyResults(n.Blocks) {
		n.Role = Tool // what stood beside the results is gone
	}
	switch r.target {
	case session.Anthropic:
		r.dropUnsigned(n)
		r.mendResults(n)
	case session.OpenAIResponses:
		r.mendResults(n)
	case session.OpenAIChat:
		r.textResult(n)
	}
	says := len(n.Blocks) > 0
	if r.target == session.OpenAIChat && r.keeps(n) && n.Role != Tool {
		says = says && n.flags&FlagEmpty == 0
	}
	switch {
	case says:
		return true
	case r.keeps(n) && !r.refusesEmpty(n, last):
		return true
	case r.keeps(n) || n.Raw != nil && n.Format == r.target:
		r.repaired(r.provider.Codes.Empty, "empty_message", n, "the message says nothing and is left out")
	}
	return false
}

// dropsEmptyTexts reports whether empty texts of the message are left out. Chat Completions takes one alone, as which
// its own message came, but not several that other messages are joined of.
func (r *repairer) dropsEmptyTexts(n *Message) bool {
	return r.provider.NoEmptyText || r.target == session.OpenAIChat && n.Format != r.target
}

func (r *repairer) dropEmptyTexts(n *Message) {
	empty := func(p Block) bool {
		said := p.Kind == Text || p.Kind == Reasoning && p.Text != nil
		sealed := isSigned(p.Signature) && n.Format == r.target && (p.Kind == Reasoning || r.target == session.Gemini)
		return said && !sealed && blank(p.Text)
	}
	if !slices.ContainsFunc(n.Blocks, empty) {
		return
	}
	n.Blocks = slices.DeleteFunc(n.Blocks, empty)
	if n.Edited = true; len(n.Blocks) > 0 && n.Format == r.target {
		r.repaired(r.provider.Codes.Empty, "empty_text", n, "an empty text is left out")
	}
}

// refusesEmpty reports whether a message without blocks, as it came in, is refused.
func (r *repairer) refusesEmpty(n *Message, last bool) bool {
	switch r.target {
	case session.OpenAIChat:
		return n.flags&(FlagEmptyArray|FlagEmpty) != 0
	case session.Anthropic:
		return n.Role != System && !(last && n.Role == Assistant && !provider.RefusesPrefill(r.Model))
	case session.Gemini:
		return n.Role != System
	}
	return false
}

// mend changes what stands in a message of the target's own format and is refused there wherever it stands. Names that
// are too long come from other formats, too.
func (r *repairer) mend(n *Message) {
	if r.provider.NameMax > 0 {
		r.mendName(n)
	}
	if n.Format != r.target || n.Raw == nil {
		return
	}
	switch r.target {
	case session.Gemini:
		r.mendContent(n)
	case session.Anthropic:
		r.mendCompaction(n)
	case session.OpenAIChat:
		if n.flags&FlagEmptyArray != 0 && n.Role == Assistant && n.has(Call) {
			n.Edited = true
			r.repaired("V-C3", "content_null", n, "content is null, not an array without parts")
		}
	}
}

// mendName cuts the names of tools that are too long.
func (r *repairer) mendName(n *Message) {
	max := r.provider.NameMax
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if p.Kind != Call || utf8.RuneCount(unquotedName(p.Name)) <= max {
			continue
		}
		p.Name = rawjson.Quote(nil, []byte(string([]rune(string(unquoted(p.Name)))[:max])))
		p.Edited, n.Edited = true, true
		r.repaired("V-R4", "name_cut", n, "the name of a tool has at most %d characters", max)
	}
}
