package wire

import (
	"cmp"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// merge joins consecutive messages of the assistant that came in another format, where the target would refuse several,
// and consecutive results.
func (r *repairer) merge(list []Message) []Message {
	switch r.target {
	case session.AISDK:
		return r.joinCalls(list)
	case session.OpenAIResponses:
		return list
	case session.OpenAIChat, session.Gemini:
		r.hold(list)
	}
	out := make([]Message, 0, len(list))
	for i := range list {
		n := &list[i]
		if len(out) == 0 || !r.merges(&out[len(out)-1], n) {
			out = append(out, *n)
			first := &out[len(out)-1]
			first.Blocks = slices.Clip(first.Blocks) // what is joined to it must not go into another's memory
			continue
		}
		last := &out[len(out)-1]
		r.joined(last, "it is joined with what comes after it")
		r.joined(n, "it is joined with what comes before it")
		if last.Format != n.Format {
			last.Extra = nil
		}
		last.Blocks = append(last.Blocks, n.Blocks...)
		last.Edited = true
	}
	return out
}

// joined tells of a message of the target's format that is no longer a message of its own.
func (r *repairer) joined(n *Message, detail string) {
	switch {
	case !r.keeps(n):
	case r.target == session.Gemini:
		r.repaired(map[Role]string{Assistant: "V-G1", Tool: "V-G2"}[n.Role], "contents_joined", n, "%s", detail)
	default:
		r.repaired(r.provider.Codes.Unanswered, "messages_joined", n, "%s", detail)
	}
}

// hold leaves the images of the last results out while other calls of their unit wait for results. Where a result
// cannot contain an image, the message of the user that shows it would come between the results.
func (r *repairer) hold(list []Message) {
	for i := len(list) - 1; r.inFlight && i >= 0 && list[i].Role == Tool; i-- {
		n := &list[i]
		each(list[i:i+1], Result, func(_ *Message, p *Block) { n.Edited = p.nameShown() || n.Edited })
	}
}

// nameShown replaces the images and files of a result with notes, and reports whether there are any.
func (p *Block) nameShown() bool {
	for i := range p.Content {
		if c := &p.Content[i]; c.Kind == Image || c.Kind == File {
			*c = Block{Kind: Text, Text: note("%s: it is shown when all results are there", c.Kind)}
			p.Edited = true
		}
	}
	return p.Edited
}

func (r *repairer) merges(a, b *Message) bool {
	switch {
	case a.Role != b.Role:
		return false
	case !r.keeps(a) || !r.keeps(b):
		return a.Role == Assistant || a.Role == Tool && r.target != session.OpenAIChat
	}
	return r.target == session.Gemini && (a.Role == Assistant || a.Role == Tool)
}

// The texts that are inserted where a provider requires a message of the user.
const (
	beginText    = "[The conversation begins here.]"
	continueText = "Continue."
)

// ends repairs the first and the last message.
func (r *repairer) ends(list []Message) []Message {
	head := pinnedHead(list)
	rest := list[head:]
	if len(rest) == 0 {
		return r.neverEmpty(list)
	}
	if r.provider.FirstUser && rest[0].Role != User && !r.mayLead(&rest[0]) {
		r.repaired(r.provider.Codes.First, "first_user", nil, "a message of the user is inserted before the first one")
		list = slices.Insert(list, head, userText(beginText))
	}
	last := &list[len(list)-1]
	for i := len(list) - 1; i > head && last.isSetting(); i-- {
		last = &list[i-1]
	}
	if last.Role != Assistant && (last.Role != System || r.takesSystem()) || last.has(Call) || r.inFlight || r.paused {
		return list
	}
	if rule := r.refusesLastAssistant(); rule != "" {
		r.repaired(rule, "last_user", nil, "a message of the user is added after the last one")
		return append(list, userText(continueText))
	}
	for i := len(list) - 1; r.isAnthropic() && i > head && list[i].Role == Assistant; i-- {
		n := &list[i]
		r.dropLastThoughts(n)
		if r.target == session.Anthropic { // which the package for the AI SDK does itself
			r.trimEnd(n)
		}
		switch {
		case !r.saysNothing(n):
			return list
		case n.Edited:
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

// dropLastThoughts leaves out the thoughts that the last message ends in: the API continues a text, not a thought
// (tailcallhq/forgecode#3071, router-for-me/CLIProxyAPI#5322).
func (r *repairer) dropLastThoughts(n *Message) {
	end := len(n.Blocks)
	for end > 0 && (r.isLastThought(&n.Blocks[end-1]) || r.isUnsent(&n.Blocks[end-1])) {
		end--
	}
	isThought := func(p Block) bool { return r.isLastThought(&p) }
	if !slices.ContainsFunc(n.Blocks[end:], isThought) {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(n.Blocks[end:]), isThought)
	n.Blocks, n.Edited = append(n.Blocks[:end:end], rest...), true
	rule := "V-A6"
	if r.target == session.AISDK {
		rule = "V-U8"
	}
	r.told(n.Format == r.target, rule, "reasoning_dropped", n,
		"a turn does not end in thinking: that is left out")
}

// isUnsent reports whether the package for the AI SDK sends nothing of a block.
func (r *repairer) isUnsent(p *Block) bool {
	return r.target == session.AISDK && !sender{r.provider}.sends(p)
}

// isAnthropic reports whether Anthropic gets the view, be it from the AI SDK.
func (r *repairer) isAnthropic() bool {
	return r.target == session.Anthropic || r.target == session.AISDK && r.provider.Package == anthropicOwner
}

// isLastThought reports whether a block at the end of a message is a thought that Anthropic gets.
func (r *repairer) isLastThought(p *Block) bool {
	if r.target == session.AISDK {
		return p.Kind == Reasoning && isSent(reasoningMetadata(p))
	}
	return p.Kind == Reasoning && (r.own(p) || r.provider.Unsigned)
}

// isSent reports whether Anthropic's package for the AI SDK sends a thought with these metadata: one that is signed or
// encrypted.
func isSent(metadata []byte) bool {
	kept := valueOf(metadata, anthropicOwner)
	return kept != nil && (isSigned(valueOf(kept, "signature")) || isSigned(valueOf(kept, "redactedData")))
}

// neverEmpty adds a message of the user if only the pinned head is left and the provider refuses a head alone. A view
// without any messages stays empty.
func (r *repairer) neverEmpty(list []Message) []Message {
	if len(r.view) == 0 || len(list) > 0 && !r.provider.NeedsMore() {
		return list
	}
	r.repaired(cmp.Or(r.provider.Codes.First, r.provider.Codes.Empty), "first_user", nil,
		"a message of the user is inserted: nothing else is left")
	return append(list, userText(beginText))
}

// limitMessages leaves the oldest messages after the pinned head out of a list that is longer than the provider takes.
// What remains begins with what the user says, or with a turn of the assistant behind an inserted message of the user:
// no result loses its call.
func (r *repairer) limitMessages(list []Message) []Message {
	head, limit := pinnedHead(list), r.provider.MaxMessages
	if !r.provider.SeparateSystem {
		limit -= min(head, limit/2)
	}
	if limit <= 0 || len(list)-head <= limit {
		return list
	}
	const detail = "the oldest %d messages are left out: the API takes %d"
	for i := len(list) - limit; i < len(list); i++ {
		if n := &list[i]; n.Role == User && !n.has(Result) {
			r.repaired(r.provider.Codes.Count, "oldest_omitted", nil, detail, i-head, limit)
			return slices.Delete(list, head, i)
		}
	}
	for i := len(list) - limit + 1; i < len(list); i++ {
		if list[i].Role == Assistant && list[i-1].Role != Assistant {
			r.repaired(r.provider.Codes.Count, "oldest_omitted", nil, detail, i-head, limit)
			return slices.Replace(list, head, i, userText(beginText))
		}
	}
	r.repaired(r.provider.Codes.Count, "messages_joined", nil,
		"messages in a row of one role are one: the API takes %d", limit)
	return r.limitMessages(append(list[:head:head], joinRuns(list[head:])...))
}

// joinRuns joins all messages in a row that are the assistant's, and all that are not.
func joinRuns(list []Message) []Message {
	var out []Message
	for len(list) > 0 {
		n := 1
		for n < len(list) && (list[n].Role == Assistant) == (list[0].Role == Assistant) {
			n++
		}
		if n > 1 {
			list[0].join(list[1:n])
		}
		out = append(out, list[0])
		list = list[n:]
	}
	return out
}

func userText(text string) Message {
	return Message{Role: User, Blocks: []Block{{Kind: Text, Text: rawjson.Quote(nil, []byte(text))}}, Edited: true}
}

// refusesLastAssistant returns the rule that requires the last message to be the user's, "" if none does.
func (r *repairer) refusesLastAssistant() string {
	switch {
	case r.target == session.Gemini:
		return "V-G4"
	case r.target == session.Anthropic && provider.RefusesPrefill(r.Model):
		return "V-A6"
	case r.target == session.AISDK && r.provider.EndsWithUser(r.Model):
		return "V-U8"
	case r.provider.LastUser:
		return "V-M1"
	}
	return ""
}
