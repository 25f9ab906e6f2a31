package wire

import (
	"bytes"
	"context"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// prepare decodes the messages, and repairs each message by itself.
func (r *repairer) prepare(ctx context.Context) ([]Message, error) {
	list, err := r.read(ctx)
	if err == nil && r.shows >= 0 { // as few views do: it is read again without what the provider does not take
		r.repairs = nil
		clear(r.ids.seen)
		if err = r.mendMedia(ctx); err == nil {
			list, err = r.read(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	list = r.settleApprovals(r.leaveCompacted(list))
	kept := list[:0]
	for i := range list {
		if n := &list[i]; r.clean(n, n.Origin == len(r.view)-1) {
			kept = append(kept, *n)
		}
	}
	return kept, nil
}

// read decodes the messages, and gives each a role that the target knows.
func (r *repairer) read(ctx context.Context) ([]Message, error) {
	list := make([]Message, 0, len(r.view))
	head := true
	for i := range r.view {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m := r.view[i]
		r.uncited = false
		if !m.isSound() {
			m.Body = r.purge(m)
			m = r.mendHalves(m)
		}
		for _, n := range r.decode(i, m.Body) {
			if r.isForeignThought(&n) {
				r.repaired("V-R9", "reasoning_dropped", &n, "reasoning that only %s can read is left out", r.Author)
				continue
			}
			if r.isForeignCompaction(&n) {
				r.repaired("V-R9", "compaction_dropped", &n, "a compaction that only its provider can read is left out")
				continue
			}
			r.cite(&n)
			head = head && n.Role == System
			list = append(list, r.role(&n, head)...)
		}
	}
	return list, nil
}

// role gives a message a role that the target knows, with only the blocks that this role may have.
func (r *repairer) role(n *Message, head bool) []Message {
	switch {
	case n.Role == System && !head && r.takesSystem(): // see settleSystem
	case n.Role == System && !head && (r.provider.SeparateSystem || r.provider.SystemFirst) && len(n.Blocks) == 0:
		r.told(r.keepsFormat(n), r.provider.Codes.Empty, "empty_message", n, "the message is empty, and is left out")
		return nil
	case n.Role == System && !head && (r.provider.SeparateSystem || r.provider.SystemFirst):
		r.repaired(r.systemRule(), "system_as_user", n, "a system message in the middle is a note of the user")
		n.makeUser("[System] ")
	case n.Role == Other:
		name := string(unquoted(n.Name))
		r.repaired("V-C5", "unknown_role", n, "the message of role %q is a note of the user", name)
		n.Name = nil
		n.makeUser("[" + name + "] ")
	}
	if n.Role != Assistant && n.has(Call) {
		r.callsAsNotes(n)
	}
	if n.Role == Assistant && n.has(Result) {
		return n.splitResults()
	}
	return []Message{*n}
}

// makeUser makes the message a message of the user that begins with a text.
func (n *Message) makeUser(before string) {
	n.Role = User
	n.Edited = true
	n.Extra = nil
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Opaque && isToolChange(p.Raw) { // which only the system may make
			n.makeText(p, substitute(p))
		}
	}
	if i := slices.IndexFunc(n.Blocks, func(p Block) bool { return p.Kind == Text }); i == 0 {
		n.Blocks[0].Text, n.Blocks[0].Edited = joined(before, n.Blocks[0].Text), true
		return
	}
	first := Block{Kind: Text, Text: rawjson.Quote(nil, bytes.TrimSpace([]byte(before))), Edited: true}
	n.Blocks = append([]Block{first}, n.Blocks...)
}

// callsAsNotes turns calls into texts in a message that is not the assistant's.
func (r *repairer) callsAsNotes(n *Message) {
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Call {
			r.repaired(r.provider.Codes.Unanswered, "call_as_note", n,
				"call %q is not in a message of the assistant: it is a note", p.CallID)
			n.makeText(p, note("call of %s: %s", p.toolName(), p.Value))
		}
	}
}

// splitResults splits a message of the assistant into messages of results and messages of everything else.
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

// clean removes from a message what its provider would refuse, and reports whether the message stays in the view. last
// reports whether it is the view's last message.
func (r *repairer) clean(n *Message, last bool) bool {
	r.adoptThoughts(n)
	r.dropStrays(n)
	if r.dropsEmptyTexts(n) {
		r.dropEmptyTexts(n)
	}
	r.mend(n)
	r.dropSealed(n)
	n.setResultRole() // everything else may have been removed
	switch r.target {
	case session.Anthropic:
		r.showUnsigned(n)
		r.mendResults(n)
		r.fitBlocks(n)
	case session.OpenAIResponses:
		r.mendResults(n)
	case session.OpenAIChat:
		r.textResult(n)
		r.fitChat(n)
	case session.AISDK:
		r.fitUI(n)
	}
	switch {
	case r.hasContent(n), r.takesSystem() && n.isSetting():
		return true
	case r.keeps(n) && !r.refusesEmpty(n, last):
		return true
	case r.keeps(n) || n.Raw != nil && n.Format == r.target:
		r.repaired(r.provider.Codes.Empty, "empty_message", n, "the message is empty, and is left out")
	}
	return false
}

// hasContent reports whether a message has what its provider counts as content.
func (r *repairer) hasContent(n *Message) bool {
	if r.target == session.OpenAIChat && r.keepsFormat(n) && n.Role != Tool {
		said := func(p Block) bool { return p.Kind != Text || len(p.Text) > len(`""`) }
		return slices.ContainsFunc(n.Blocks, said) || hasSound(n) || n.declares()
	}
	return len(n.Blocks) > 0
}

// dropsEmptyTexts reports whether empty texts of the message are left out. A message of Chat Completions may have an
// empty content, but messages of other formats may be joined there.
func (r *repairer) dropsEmptyTexts(n *Message) bool {
	return r.provider.NoEmptyText || r.target == session.OpenAIChat && n.Format != r.target
}

func (r *repairer) dropEmptyTexts(n *Message) {
	empty := func(p Block) bool {
		said := p.Kind == Text || p.Kind == Reasoning && p.Text != nil
		return said && !r.isSealed(&p) && blank(p.Text)
	}
	if !slices.ContainsFunc(n.Blocks, empty) {
		return
	}
	n.Blocks = slices.DeleteFunc(n.Blocks, empty)
	if n.Edited = true; len(n.Blocks) > 0 && n.Format == r.target {
		r.repaired(r.provider.Codes.Empty, "empty_text", n, "an empty text is left out")
	}
}

// isSealed reports whether a thought or a text carries data that its provider wants back, such as a signature. Such a
// block stays even if its text is empty.
func (r *repairer) isSealed(p *Block) bool {
	switch {
	case p.Format != r.target:
		return false
	case r.target == session.AISDK:
		return p.Signature != nil && (p.Kind == Reasoning || r.provider.Package == googleOwner)
	}
	unsigned := r.provider.Unsigned && p.Kind == Reasoning
	return unsigned || isSigned(p.Signature) && (p.Kind == Reasoning || r.target == session.Gemini)
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
	case session.OpenAIResponses:
		return isMessageItem(n.Raw) && member(n.Raw, "content") == (Span{})
	case session.AISDK:
		without := n.flags&FlagEmptyArray != 0 || !isArray(n.Raw, member(n.Raw, "parts"))
		return without || r.provider.Dialect != ""
	}
	return false
}

// mend changes what a message of the target's own format must never contain.
func (r *repairer) mend(n *Message) {
	if n.Format != r.target || n.Raw == nil || r.view[n.Origin].isSound() {
		return
	}
	switch r.target {
	case session.Gemini:
		r.mendContent(n)
	case session.Anthropic:
		r.mendCompaction(n)
	case session.OpenAIResponses:
		r.fitArguments(n)
	case session.OpenAIChat:
		r.mendSpeaker(n)
		r.dropTwin(n)
		r.fitArguments(n)
		r.fitTypes(n)
		if n.flags&FlagEmptyArray != 0 && n.Role == Assistant && (n.has(Call) || hasSound(n)) {
			n.Edited = true
			r.repaired("V-C3", "content_null", n, "content is null instead of an empty array")
		}
	}
}
