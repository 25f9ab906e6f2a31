package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// repairer renders one view.
type repairer struct {
	Options
	target   session.Format
	provider *provider.Facts // of target
	view     []Stored
	repairs  []Repair
	inFlight bool // calls of the last unit wait for their results
}

func (r *repairer) repaired(rule, kind string, n *Message, format string, args ...any) {
	repair := Repair{Rule: rule, Kind: kind, Detail: fmt.Sprintf(format, args...)}
	if n != nil && n.Raw != nil {
		repair.Seq = r.view[n.Origin].Seq
	}
	r.repairs = append(r.repairs, repair)
}

// keeps reports whether the message will stand in the view as the bytes that came in, if nothing else is done to it.
func (r *repairer) keeps(n *Message) bool { return n.Format == r.target && n.Raw != nil && !n.Edited }

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

// decode reads message i. One that cannot be read, which no append lets in, is shown as what it is.
func (r *repairer) decode(i int) []Message {
	m := r.view[i]
	list, flags, err := decode(m.Format, m.Body)
	if err != nil {
		broken := Block{Kind: Opaque, Raw: m.Body}
		r.repairs = append(r.repairs, Repair{Rule: "inspect", Kind: "unreadable", Seq: m.Seq, Detail: err.Error()})
		text := Block{Kind: Text, Text: substitute(&broken)}
		return []Message{{Role: User, Origin: i, Blocks: []Block{text}, Edited: true}}
	}
	for j := range list {
		n := &list[j]
		n.Origin, n.flags = i, flags
		n.Edited = slices.ContainsFunc(n.Blocks, func(p Block) bool { return p.Edited })
		if n.Edited && n.Format == r.target {
			r.repaired(r.provider.Codes.Content, "part_mended", n, "a part is none that the API takes as it is")
		}
	}
	return list
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
	n.Blocks = slices.Clone(n.Blocks)
	if i := slices.IndexFunc(n.Blocks, func(p Block) bool { return p.Kind == Text }); i == 0 {
		n.Blocks[0].Text, n.Blocks[0].Edited = joined(before, n.Blocks[0].Text), true
		return
	}
	first := Block{Kind: Text, Text: rawjson.Quote(nil, bytes.TrimSpace([]byte(before))), Edited: true}
	n.Blocks = append([]Block{first}, n.Blocks...)
}

// callsAsNotes makes texts of calls that are not the assistant's.
func (r *repairer) callsAsNotes(n *Message) {
	n.Edited = true
	n.Blocks = slices.Clone(n.Blocks)
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Call {
			r.repaired(r.provider.Codes.Unanswered, "call_as_note", n,
				"call %q is not the assistant's: it is a note", p.CallID)
			*p = Block{Kind: Text, Text: note("call of %s: %s", p.toolName(), p.Value), Edited: true}
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

func pinnedHead(list []Message) int {
	n := 0
	for n < len(list) && list[n].Role == System {
		n++
	}
	return n
}
