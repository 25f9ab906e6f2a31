package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// repairer renders one view.
type repairer struct {
	Options
	target    session.Format
	provider  *provider.Facts // of target
	view      []Stored
	repairs   []Repair
	ids       itemIDs // Responses: of the items that were read
	shows     int64   // the seq of the last message that shows images or files, -1 for none
	uncited   bool    // the message that is read goes without its annotations
	marked    bool    // there may be marks for the provider's cache
	inFlight  bool    // calls of the last unit wait for their results
	paused    bool    // the last message ends in a call with which the provider continues
	compacted int64   // the seq of the provider's own compaction: what has changed before it binds nothing
	late      []Seqs  // from a call to its late result, from an image that is left out to the newest

	toolNames map[string]string // see Rendition
}

func repairerOf(target session.Format, view []Stored) *repairer {
	all := func(string) bool { return true }
	ids := itemIDs{seen: map[string]bool{}, max: provider.MaxItemID, knows: all}
	return &repairer{target: target, provider: provider.Of(target), view: view, ids: ids, shows: -1}
}

func (r *repairer) repaired(rule, kind string, n *Message, format string, args ...any) {
	for i, arg := range args {
		if id, ok := arg.(string); ok {
			args[i] = shownID(id)
		}
	}
	repair := Repair{Rule: rule, Kind: kind, Detail: fmt.Sprintf(format, args...)}
	if n != nil && n.Raw != nil {
		repair.Seq = r.view[n.Origin].Seq
	}
	r.repairs = append(r.repairs, repair)
}

// shownID returns an id as texts name it, which may be as long as 64 KiB.
func shownID(id string) string {
	const limit = 96
	if len(id) <= limit {
		return id
	}
	return strings.ToValidUTF8(id[:limit], "") + "…"
}

// keeps reports whether the message is in the view as the bytes that came in, unless something else changes it.
func (r *repairer) keeps(n *Message) bool { return n.Format == r.target && n.Raw != nil && !n.Edited }

// decode reads message i from body, the part of it that the view shows. It turns a message that cannot be read, which
// no append accepts, into a text.
func (r *repairer) decode(i int, body []byte) []Message {
	m := r.view[i]
	list, has, err := decode(m.Format, body)
	if err == nil && m.Format == session.OpenAIResponses && m.Format == r.target {
		list = r.fitID(m, list, has.item)
	}
	if err != nil {
		broken := Block{Kind: Opaque, Raw: m.Body}
		r.repairs = append(r.repairs, Repair{Rule: "inspect", Kind: "unreadable", Seq: m.Seq, Detail: err.Error()})
		text := Block{Kind: Text, Text: substitute(&broken)}
		return []Message{{Role: User, Origin: i, Blocks: []Block{text}, Edited: true}}
	}
	r.marked = r.marked || has.marked
	if has.shows {
		r.shows = m.Seq
	}
	for j := range list {
		n := &list[j]
		n.Origin = i
		n.twin = has.twin != nil && !r.provider.Tools.Take(stringMember(has.twin, "name"))
		n.Edited = slices.ContainsFunc(n.Blocks, func(p Block) bool { return p.Edited }) ||
			has.model || j == 0 && m.Format == session.AISDK && !hasUIID(n.Extra)
		if n.Edited && n.Format == r.target {
			r.repaired(r.provider.Codes.Content, "part_mended", n,
				"a part is rewritten: the API does not take it as it was")
		}
	}
	return list
}
