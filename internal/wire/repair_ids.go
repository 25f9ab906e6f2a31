package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// idRule is what a provider takes as the id of a call.
type idRule struct {
	max    int
	plain  bool // letters, digits, _ and - only
	unique bool // also the ids of this provider's own messages
}

// Chat Completions pairs by position, and Gemini needs no ids at all: their own ones may repeat.
var idRules = map[session.Format]idRule{
	session.OpenAIChat:      {max: 40},
	session.OpenAIResponses: {max: 64, unique: true},
	session.Anthropic:       {max: 64, plain: true, unique: true},
	session.Gemini:          {max: 64},
	session.AISDK:           {max: 256, unique: true},
}

// rename gives every call whose id the target would refuse, or has seen before, another one, and its result the same.
// Ids that are good stay. The same view gets the same ids in every rendering, and a longer view those of its beginning.
func (r *repairer) rename(list []Message) {
	taken, tried, renamed := map[string]bool{}, map[string]int{}, map[int]string{}
	each(list, Call, func(n *Message, p *Block) {
		if id := r.idOf(n, p, taken, tried); id != p.CallID {
			renamed[p.pair] = id
			r.repaired(r.idRuleName(), "call_renamed", n, "call %q is %q", p.CallID, id)
			n.rename(p, id)
		}
		taken[p.CallID] = true
	})
	each(list, Result, func(n *Message, p *Block) {
		if id, ok := renamed[p.pair]; ok && p.pair > 0 {
			n.rename(p, id)
		}
	})
}

func (r *repairer) idRuleName() string {
	switch {
	case mistral(r.Model) && r.target == session.OpenAIChat:
		return "V-M1"
	case r.target == session.OpenAIChat:
		return "V-C4"
	case r.target == session.Anthropic:
		return "V-A4"
	}
	return "V-R4"
}

// each calls f for all blocks of a kind.
func each(list []Message, kind Kind, f func(*Message, *Block)) {
	for i := range list {
		for j := range list[i].Blocks {
			if p := &list[i].Blocks[j]; p.Kind == kind {
				f(&list[i], p)
			}
		}
	}
}

// idOf is the id that a call has in the view. tried counts how many ids that were made of an id are taken: a long
// conversation may have one thousands of times.
func (r *repairer) idOf(n *Message, p *Block, taken map[string]bool, tried map[string]int) string {
	rule := idRules[r.target]
	own := n.Format == r.target
	fits := rule.fits
	if r.target == session.OpenAIChat && mistral(r.Model) {
		fits, own = nineAlphanumerics, false
	}
	if (fits(p.CallID) || own && r.target == session.Gemini) && (!taken[p.CallID] || own && !rule.unique) {
		return p.CallID
	}
	for n := tried[p.CallID]; ; n++ {
		id := rule.make(p.CallID, n)
		if mistral(r.Model) && r.target == session.OpenAIChat {
			id = nine(p.CallID, n)
		}
		if !taken[id] {
			tried[p.CallID] = n + 1
			return id
		}
	}
}

func (i idRule) fits(id string) bool {
	return id != "" && len(id) <= i.max && (!i.plain || idPattern(id))
}

// make is a valid id for one that is not: what it begins with, and ten digits of its hash. n tells those apart that were
// equal.
func (i idRule) make(id string, n int) string {
	const digits = 10
	hash := hex.EncodeToString(digest(id, n))[:digits]
	prefix := strings.Map(func(c rune) rune {
		if idPattern(string(c)) {
			return c
		}
		return '_'
	}, id)
	if prefix == "" {
		prefix = "call"
	}
	return prefix[:min(len(prefix), i.max-digits-1)] + "_" + hash
}

func digest(id string, n int) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s#%d", id, n))
	return sum[:]
}

// nine is an id for Mistral.
func nine(id string, n int) string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out := make([]byte, 9)
	for i, b := range digest(id, n)[:len(out)] {
		out[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(out)
}

func nineAlphanumerics(id string) bool {
	return len(id) == 9 && idPattern(id) && !strings.ContainsAny(id, "_-")
}

// idMembers are the members that hold a call's id, whatever the format.
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
