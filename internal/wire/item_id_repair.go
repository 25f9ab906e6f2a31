package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// itemID reads the id of an item, which an append must know: whether the API takes it, and a sum by which a
// FastValidator knows it again.
func (s *scanner) itemID(kind string, at Span) {
	want, known := provider.ItemIDOf(kind)
	switch {
	case s.ir != nil || s.reader != nil || !known:
	case s.absent(at):
		s.loose = s.loose || want.Required
	case !s.is(at, '"'):
		s.loose = true
	default:
		id := s.body[at.Start+1 : at.End-1]
		s.loose = s.loose || idFault(want, string(id), provider.MaxItemID) != ""
		s.idSum = max(1, Flags(hashOf(string(id))&(1<<nameBits-1)))
	}
}

// idFault says what is wrong with the id of an item, "" for nothing.
func idFault(want provider.ItemID, id string, max int) string {
	switch {
	case len(id) > max:
		return fmt.Sprintf("has more than %d characters", max)
	case !provider.PlainID(id):
		return "is not made of letters, digits, _ and -"
	case !strings.HasPrefix(id, want.Prefix):
		return fmt.Sprintf("does not begin with %q", want.Prefix)
	}
	return ""
}

// itemIDs are what the ids of items are held to.
type itemIDs struct {
	seen  map[string]bool // those of the items before
	max   int
	knows func(prefix string) bool
}

// fault says what is wrong with the id of the next item, "" for nothing.
func (ids *itemIDs) fault(item itemHead) (id, fault string) {
	want, known := provider.ItemIDOf(item.kind)
	switch {
	case !known, item.id == nil && !want.Required:
		return "", ""
	case item.id == nil:
		return "", "is missing"
	case item.id[0] == '"':
		id = string(unquoted(item.id))
	}
	if !ids.knows(want.Prefix) {
		want.Prefix = ""
	}
	if fault = idFault(want, id, ids.max); fault == "" && ids.seen[id] {
		fault = "is that of an item before"
	}
	if fault == "" {
		ids.seen[id] = true
	}
	return id, fault
}

// fitID returns an item, which was read, as one that the API takes beside those before.
func (r *repairer) fitID(m Stored, item []Message, head itemHead) []Message {
	id, fault := r.ids.fault(head)
	if fault == "" {
		return item
	}
	return Decode(m.Format, r.withoutID(m, item[0], head.kind, id, fault)) // which Encode wrote
}

// withoutID returns an item without its id, if it may go without one. Any other one becomes a call of a function, or a
// text.
func (r *repairer) withoutID(m Stored, made Message, kind, id, fault string) []byte {
	item := made.Raw
	want, _ := provider.ItemIDOf(kind)
	told := func(repair, what string) {
		r.repairs = append(r.repairs, Repair{
			Rule: "V-R8", Kind: repair, Seq: m.Seq, Detail: fmt.Sprintf("the id %q %s: %s", id, fault, what),
		})
	}
	switch {
	case kind == "reasoning" && byID(item):
		told("reasoning_dropped", "the reasoning, which is known by it alone, is left out")
		made.Blocks, made.Edited = nil, true
	case !want.Required:
		told("item_id_dropped", "the item goes without one")
		return without(item, "id")
	default:
		told(made.asCallOrText())
	}
	return Encode(session.OpenAIResponses, []Message{made})[0]
}

// asCallOrText makes an item of the API's own, which must have an id, a call of a function, or a text, and returns what
// repair that is.
func (n *Message) asCallOrText() (repair, what string) {
	p := &n.Blocks[0]
	p.Edited, n.Edited = true, true
	if p.Kind == Call {
		return "call_as_function", "the call is that of a function"
	}
	n.Role = Assistant
	n.makeText(p, substitute(p))
	return "block_as_note", "the item is a text"
}

// forgetThoughts takes the ids from items behind a removed one, which may be the reasoning that led to them: the API
// knows by an item's id which reasoning that needs ("Item 'fc_1' of type 'function_call' was provided without its
// required 'reasoning' item: 'rs_1'.", cline/cline#12242). One that must have an id, because the API or its computer
// ran it, becomes a call of a function, or a text (can1357/oh-my-pi#6824).
func (r *repairer) forgetThoughts(list []Message) {
	for i := range list {
		n := &list[i]
		if n.Raw == nil || !slices.Contains(r.Removed, r.view[n.Origin].Seq) {
			continue
		}
		for j := range r.forgetThought(list[i:]) {
			r.demote(&list[i+j])
		}
	}
}

// forgetThought takes the ids from the items at the beginning of a list that a thought before them may have led to, and
// returns how many they are.
func (r *repairer) forgetThought(list []Message) (items int) {
	for i := range list {
		n := &list[i]
		if r.target != session.OpenAIResponses || !r.keepsFormat(n) || n.Role != Assistant || n.has(Reasoning) {
			return i
		}
		if want, known := provider.ItemIDOf(headOf(n.Raw).kind); !known || want.Required || !r.hasItemID(n) {
			continue
		}
		n.Extra = othersOf(n.extras(), "id")
		for j := range n.Blocks {
			if p := &n.Blocks[j]; r.own(p) && bytes.Equal(p.Raw, rawjson.Value(n.Raw).Of(n.Raw)) {
				p.Raw = without(p.Raw, "id")
			}
		}
		n.Edited = true
		r.repaired("V-R3", "item_id_dropped", n, "the reasoning that led to the item may be removed: it has no id")
	}
	return len(list)
}

// demote makes an item that cannot go without its id a call of a function, or a text. Nothing leads to a list of tools.
func (r *repairer) demote(n *Message) {
	of := headOf(n.Raw).kind
	if want, _ := provider.ItemIDOf(of); !want.Required || of == "mcp_list_tools" || !r.hasItemID(n) {
		return
	}
	kind, what := n.asCallOrText()
	r.repaired("V-R3", kind, n, "the reasoning that led to the item may be removed: %s", what)
}

// Forgetting does for items that leave the log what Render does for those of Options.Removed.
type Forgetting struct{ behind bool }

// Item returns the next item without its id if a removed item before it may be the reasoning that led to it: one that
// must have an id as a call of a function, or as a text. removed reports whether one was directly before it.
func (s *Forgetting) Item(f session.Format, item []byte, removed bool) []byte {
	if !removed && !s.behind {
		return item
	}
	found, err := Inspect(f, item)
	thinks := slices.ContainsFunc(found.Parts, func(p Part) bool { return p.Kind == Reasoning })
	s.behind = err == nil && f == session.OpenAIResponses && found.Role == "assistant" && !thinks
	kind := headOf(item).kind
	want, known := provider.ItemIDOf(kind)
	switch {
	case !s.behind || !known || kind == "mcp_list_tools" || valueOf(item, "id") == nil:
		return item
	case want.Required:
		made := Decode(f, item)
		made[0].asCallOrText()
		return Encode(f, made)[0]
	}
	return without(item, "id")
}

// hasItemID reports whether an item will be written with an id.
func (r *repairer) hasItemID(n *Message) bool {
	isNamed := func(p Block) bool { return r.own(&p) && valueOf(p.Raw, "id") != nil }
	return hasMember(n.extras(), "id") || slices.ContainsFunc(n.Blocks, isNamed)
}

// idsFit checks V-R8.
func (c *checker) idsFit() {
	ids := itemIDs{seen: map[string]bool{}, max: c.rule.limits["id"], knows: c.knows}
	for i, item := range c.bodies {
		if id, fault := ids.fault(headOf(item)); fault != "" {
			c.report(i, "the id %q %s", id, fault)
		}
	}
}

// messagesHaveContent checks V-R7.
func (c *checker) messagesHaveContent() {
	for i, item := range c.bodies {
		if isMessageItem(item) && member(item, "content") == (Span{}) {
			c.report(i, "the message has no content")
		}
	}
}
