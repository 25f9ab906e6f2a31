package wire

import (
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// A provider may have compacted a conversation itself: Anthropic's compaction blocks and the compaction items of
// Responses come with an answer, go back as they came, and stand for all before them. The provider ignores that, so a
// view for it leaves it out (platform.claude.com/docs/en/build-with-claude/compaction, Passing compaction blocks back;
// developers.openai.com/api/docs/guides/compaction).

// Whose compactions there are.
const (
	anthropicOwner = "anthropic"
	openAIOwner    = "openai"
	googleOwner    = "google"
)

// Compacts reports whether a message has a compaction of a provider that stands for what is before it. One without
// content is that of an attempt that failed, which Anthropic ignores.
func Compacts(f session.Format, body []byte) bool { return compactor(f, body) != "" }

// compactor returns whose compaction a message has: the provider's, by the name of its package for the AI SDK.
func compactor(f session.Format, body []byte) (owner string) {
	switch {
	case f == session.OpenAIChat || f == session.Gemini: // have none
	case f == session.OpenAIResponses:
		if isCompactionItem(body) {
			return openAIOwner
		}
	case stringMember(body, "role") == "assistant" && MayCompact(f, body):
		for _, list := range []string{"content", "parts"} {
			for block := range elementsOf(body, list) {
				if owner = compactorOf(f, block); owner != "" {
					return owner
				}
			}
		}
	}
	return ""
}

// compactorOf returns whose compaction a block is, "" for any other block. The packages of the AI SDK have Anthropic's
// as a text and OpenAI's as a custom part.
func compactorOf(f session.Format, block []byte) (owner string) {
	kept := valueOf(block, "providerMetadata")
	if kept == nil {
		kept = valueOf(block, "providerOptions")
	}
	switch {
	case f == session.Anthropic && isSummary(block),
		isType(block, "text") && isType(valueOf(kept, "anthropic"), "compaction") && stringMember(block, "text") != "":
		return anthropicOwner
	case stringMember(block, "kind") == "openai.compaction" &&
		isSigned(valueOf(keptFor(openAIOwner, kept), "encryptedContent")):
		return openAIOwner
	}
	return ""
}

// compactions are names that such a block, item or part has.
var compactions = []string{"compaction", olderCompaction, "openai.compaction"}

// MayCompact reports whether one of several messages may have a compaction, without a look at their JSON.
func MayCompact(f session.Format, joined []byte) bool {
	return f != session.OpenAIChat && f != session.Gemini && rawjson.HasAny(joined, compactions)
}

// olderCompaction is what the items of compactions were called first (openai/codex, protocol/src/models.rs: an alias).
const olderCompaction = "compaction_summary"

func isCompactionItem(item []byte) bool {
	ofType := isType(item, "compaction") || isType(item, olderCompaction)
	return ofType && isSigned(valueOf(item, "encrypted_content"))
}

// renamedCompaction returns a message in which an item has the name of today.
func renamedCompaction(f session.Format, body []byte) (made []byte, renamed bool) {
	if f != session.OpenAIResponses || !isType(body, olderCompaction) {
		return body, false
	}
	at := member(body, "type")
	return Replace(nil, body, []Edit{{Span: at, With: []byte(`"compaction"`)}}), true
}

// isSummary reports whether a block of Anthropic is a compaction with a content.
func isSummary(block []byte) bool {
	return isType(block, "compaction") && len(stringMember(block, "content")) > 0
}

// Compaction is a compaction of the provider's own in a view.
type Compaction struct {
	At   int    // the message that has it
	From int    // the messages from this one on,
	To   int    // and before that one, are not needed
	Left Repair // tells that they are left out
}

// CompactionIn finds the newest compaction in a view by the provider that it is for. ok is false if there is none.
func CompactionIn(target session.Format, view []Stored, o Options) (c Compaction, ok bool) {
	for i := len(view) - 1; i >= 0; i-- {
		owner := ""
		if m := &view[i]; m.Format == target && m.mayHaveState() {
			owner = compactor(m.Format, m.Body)
		}
		if owner == "" || target == session.AISDK && owner != o.server(target).Package {
			continue
		}
		c.At, c.To = i, i
		for c.From < i && isSystem(&view[c.From]) {
			c.From++
		}
		if owner == openAIOwner && o.isForeign() {
			return c, false
		}
		if target == session.OpenAIResponses {
			c.To = neededItems(view, c.From, i)
		}
		c.Left = Repair{Rule: "compaction", Kind: "compacted", Seq: view[i].Seq,
			Detail: fmt.Sprintf("what the provider has compacted is left out: %d messages", c.To-c.From)}
		return c, true
	}
	return c, false
}

func isSystem(m *Stored) bool {
	found, err := Inspect(m.Format, m.Body)
	return err == nil && found.Flags&FlagPinned != 0
}

// neededItems returns the first of the items from one on and before a compaction that the API needs: the user's
// messages that /responses/compact returns with a compaction, if nothing else is before it, and the turn whose calls
// are answered behind it.
func neededItems(view []Stored, from, at int) int {
	var calls units.Pairer[int]
	window, said := true, from
	for i, m := range view[from:at] {
		found, _ := Inspect(m.Format, m.Body) // of one that cannot be read, nothing is known
		byUser := found.Role == "user" && found.StartsUnit
		if window = window && (byUser || found.Flags&FlagPinned != 0); byUser {
			said = from + i
		}
		switch stringMember(m.Body, "type") {
		case "mcp_approval_request":
			calls.Call(stringMember(m.Body, "id"), "", from+i)
		case approvalResponse:
			calls.Answer(stringMember(m.Body, "approval_request_id"), "")
		case searchCall:
			if id := searchID(m.Body); id != "" {
				calls.Call(id, "", from+i)
			}
		case searchOutput:
			calls.Answer(searchID(m.Body), "")
		}
		for p := range found.Parts {
			switch part := &found.Parts[p]; part.Kind {
			case Call:
				calls.Call(part.CallID, part.Name, from+i)
			case Result:
				calls.Answer(part.CallID, part.Name)
			}
		}
	}
	if window {
		return from
	}
	for call := range calls.All() {
		if said < call {
			return said
		}
	}
	return at
}

// leaveCompacted leaves out what the provider has compacted.
func (r *repairer) leaveCompacted(list []Message) []Message {
	c, ok := CompactionIn(r.target, r.view, r.Options)
	if !ok {
		return list
	}
	if r.compacted = r.view[c.At].Seq; c.To == c.From {
		return list
	}
	r.repairs = append(r.repairs, c.Left)
	kept := list[:0]
	for i := range list {
		if at := list[i].Origin; at < c.From || at >= c.To {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// isForeignCompaction reports whether an item is a compaction that only another provider can read.
func (r *repairer) isForeignCompaction(n *Message) bool {
	return n.Format == session.OpenAIResponses && n.has(Opaque) &&
		(isType(n.Raw, "compaction") || isType(n.Raw, olderCompaction)) &&
		(r.target != n.Format || r.isForeign() && isCompactionItem(n.Raw))
}

// mayLead reports whether a message of the assistant may lead a list: with a compaction of Anthropic's it stands for
// what was before.
func (r *repairer) mayLead(n *Message) bool {
	return n.Role == Assistant && leads(r.target, r.provider) && slices.ContainsFunc(n.Blocks, func(p Block) bool {
		return p.Format == r.target && p.Raw != nil && compactorOf(r.target, p.Raw) == anthropicOwner
	})
}

func leads(f session.Format, server *provider.Facts) bool {
	return f == session.Anthropic || server.Package == anthropicOwner
}
