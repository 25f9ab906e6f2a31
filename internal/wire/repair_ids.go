package wire

import (
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// rename gives every call another id if the target would refuse its id or has seen it before, and its result the id of
// its call, be it that the result came under one that a view gave the call. All other ids stay. The same view gets the
// same ids in every rendering, and so does the beginning of a longer view.
func (r *repairer) rename(list []Message) {
	taken := map[string]bool{}
	tried := map[string]int{}
	ids := map[int]string{} // of calls, by their pairs
	each(list, Call, func(n *Message, p *Block) {
		if id := r.idOf(n, p, taken, tried); id != p.CallID {
			r.repaired(r.provider.Codes.CallID, "call_renamed", n, "call %q is renamed to %q", p.CallID, id)
			n.rename(p, id)
		}
		taken[p.CallID] = true
		ids[p.pair] = p.CallID
	})
	each(list, Result, func(n *Message, p *Block) {
		if id, ok := ids[p.pair]; ok && p.pair > 0 && id != p.CallID {
			switch {
			case p.CallID == "":
				r.repaired(r.provider.Codes.CallID, "call_renamed", n,
					"a result without an id has that of its call, %q", id)
			case r.keeps(n) && r.target != session.AISDK: // there, the call is in the same message
				r.repaired(r.provider.Codes.CallID, "call_renamed", n,
					"the result of call %q is that of %q", p.CallID, id)
			}
			n.rename(p, id)
		}
	})
}

// idOf returns the id that a call has in the view. A legacy call of Chat Completions keeps its id, which is not sent;
// Mistral's models have no such calls. tried counts, for each id,
// how many of its replacements are taken: a long conversation may repeat an id thousands of times.
func (r *repairer) idOf(n *Message, p *Block, taken map[string]bool, tried map[string]int) string {
	own := n.Format == r.target
	fits := r.provider.FitsID
	mistral := r.provider.IDLength > 0
	if mistral {
		fits = func(id string) bool { return isAlphanumeric(id, r.provider.IDLength) }
		own = false
	}
	made := r.target == session.OpenAIChat && strings.HasPrefix(p.CallID, functionPrefix)
	accepted := fits(p.CallID) || own && (r.provider.IDAny && !made || r.formOf(n, p) == legacyForm)
	if accepted && (!taken[p.CallID] || own && !r.provider.IDUnique) {
		return p.CallID
	}
	for n := tried[p.CallID]; ; n++ {
		id := units.Alias(plainBeginning(p.CallID), p.CallID, n, r.provider.IDMax)
		if mistral {
			id = units.PlainAlias(p.CallID, n, r.provider.IDLength)
		}
		if !taken[id] {
			tried[p.CallID] = n + 1
			return id
		}
	}
}

// plainBeginning returns an id or a name with _ for every character that is not a letter, a digit, _ or -.
func plainBeginning(id string) string {
	return strings.Map(func(c rune) rune {
		if provider.PlainID(string(c)) {
			return c
		}
		return '_'
	}, id)
}

// isAlphanumeric reports whether an id consists of length letters and digits.
func isAlphanumeric(id string, length int) bool {
	return len(id) == length && provider.PlainID(id) && !strings.ContainsAny(id, "_-")
}

// idMembers are the members that contain the id of a call, in all formats.
var idMembers = []string{"tool_use_id", "call_id", "toolCallId", "tool_call_id", "id"}

// rename changes the id of a call or a result, in its bytes if they have it.
func (n *Message) rename(p *Block, id string) {
	n.Edited = true
	old := rawjson.Quote(nil, []byte(p.CallID))
	p.CallID = id
	for _, name := range idMembers {
		if at := member(p.Raw, name); len(old) > len(`""`) && at != (Span{}) && string(at.Of(p.Raw)) == string(old) {
			p.Raw = Replace(nil, p.Raw, []Edit{{Span: at, With: rawjson.Quote(nil, []byte(id))}})
			return
		}
	}
	p.Edited = true
}
