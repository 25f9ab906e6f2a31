package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// fitChat changes what the server of a dialect of Chat Completions refuses in a message by itself.
func (r *repairer) fitChat(n *Message) {
	r.fitReasoning(n)
	if r.provider.Dialect == "" {
		return
	}
	r.fitRole(n)
	r.fitDeclared(n)
	r.fitTools(n)
	r.fitMembers(n)
	r.fitObjects(n)
	r.fitContent(n)
}

// fitRole gives a message a role that the server knows: a developer is the system, and a legacy call one of today.
func (r *repairer) fitRole(n *Message) {
	if !r.keepsFormat(n) {
		return
	}
	if n.Role == System && !r.provider.KnowsRole(stringMember(n.Raw, "role")) {
		n.Edited = true
		r.repaired("V-D2", "role_renamed", n, "the role developer is system")
	}
	if r.provider.KnowsRole("function") {
		return
	}
	twice := member(n.Raw, "function_call") != (Span{}) && member(n.Raw, "tool_calls") != (Span{})
	if n.Role == Assistant && !n.Edited && twice {
		n.Edited = true
		r.repaired("V-D2", "legacy_call", n, "function_call, which repeats a call of tool_calls, is left out")
	}
	for i := range n.Blocks {
		if p := &n.Blocks[i]; (p.Kind == Call || p.Kind == Result) && n.isLegacy(p) {
			n.reform(p)
			r.repaired("V-D2", "legacy_call", n, "a call or a result has the form of today: %s", p.CallID)
		}
	}
}

// fitTools makes the calls of custom tools those of functions, with the free text as their input.
func (r *repairer) fitTools(n *Message) {
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if !r.provider.NoCustom || p.Kind != Call || !p.Custom {
			continue
		}
		if r.own(p) {
			r.repaired("V-D8", "custom_as_function", n,
				"the server has no custom tools: call %q is a function's", p.CallID)
		}
		p.Value, p.Custom = appendObject(nil, "input", p.Value), false
		p.Edited, n.Edited = true, true
	}
}

// fitObjects makes the arguments of calls objects, where the server reads them.
func (r *repairer) fitObjects(n *Message) {
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if !r.provider.ObjectInputs || p.Kind != Call || p.Custom {
			continue
		}
		own := r.own(p)
		if own && isObjectText(rawArguments(p.Raw)) || !own && len(p.Value) > 0 && p.Value[0] == '{' {
			continue
		}
		if own {
			r.repaired("V-D11", "input_as_object", n, "the arguments of call %q are an object", p.CallID)
		}
		p.Value = appendInput(nil, p.Value)
		p.Edited, n.Edited = true, true
	}
}

// keepsFormat reports whether a message came in the target's format.
func (r *repairer) keepsFormat(n *Message) bool { return n.Format == r.target && n.Raw != nil }

// fitMembers leaves out the members that a strict server does not know. A speaker's name becomes a note, and a refusal
// a text.
func (r *repairer) fitMembers(n *Message) {
	known := r.provider.Members
	if known == nil {
		return
	}
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Refusal {
			if r.keepsFormat(n) && p.Raw != nil { // dropMembers tells of one beside the content
				r.repaired("V-D4", "members_dropped", n, "a refusal is a text: the server does not know it")
			}
			p.Refusal = false
			p.Edited, n.Edited = true, true
		}
	}
	if r.keepsFormat(n) {
		n.nameAudio()
		r.dropMembers(n)
	}
	if n.Name != nil && n.Role != Tool && n.Role != Other && !slices.Contains(known, "name") {
		n.noteSpeaker()
	}
}

func (r *repairer) dropMembers(n *Message) {
	known := r.provider.Members
	unknown := unknownMembers(n.Raw, known, n.Role == Tool)
	for i := range n.Blocks {
		unknown = append(unknown, r.strip(&n.Blocks[i])...)
		for j := range n.Blocks[i].Content {
			unknown = append(unknown, r.strip(&n.Blocks[i].Content[j])...)
		}
	}
	if len(unknown) == 0 {
		return
	}
	n.Edited = true
	n.Extra = appendMembers(nil, n.extras(), true, known)
	r.repaired("V-D4", "members_dropped", n, "the server does not know %q", unknown)
}

// strip leaves out of a block or a call what a strict server does not know, and returns the names.
func (r *repairer) strip(p *Block) (names []string) {
	isCall := p.Kind == Call && (hasMember(p.Raw, "function") || hasMember(p.Raw, "id"))
	if !r.own(p) || p.Raw[0] != '{' || !isCall && p.Kind != Text && p.Kind != Image {
		return nil
	}
	var edits []Edit
	for _, in := range strictIntruders(p.Raw, isCall) {
		names = append(names, in.name)
		edits = append(edits, Edit{Span: in.at})
	}
	p.Raw = Replace(nil, p.Raw, edits)
	return names
}

// strictIntruders returns the members of a call or a block that a strict server does not know.
func strictIntruders(raw []byte, call bool) []intruder {
	if raw[rawjson.Start(raw)] != '{' {
		return nil
	}
	of, tool := provider.Strict()
	if call {
		of = tool
	}
	w := memberWalk{body: raw}
	w.object(rawjson.Start(raw), of)
	return slices.DeleteFunc(w.found, func(in intruder) bool { return in.of != nil })
}

// unknownMembers returns the names of members that are not among the known ones, or are null. A result may have the
// name of its tool, and content may be null.
func unknownMembers(message []byte, known []string, result bool) (names []string) {
	for key, value := range rawjson.Members(message, rawjson.Start(message)) {
		is := func(name string) bool { return rawjson.KeyIs(message, key, name) }
		null := message[value.Start] == 'n' && !is("content")
		if null || !slices.ContainsFunc(known, is) && !(result && is("name")) {
			names = append(names, string(unquoted(key.Of(message))))
		}
	}
	return names
}

// fitContent marks a message as edited whose content must be a string, and turns what the server's models cannot see
// into texts.
func (r *repairer) fitContent(n *Message) {
	if r.provider.NoImages || r.provider.Blocks != nil {
		r.hideMedia(n, n.Blocks)
	}
	if r.keepsFormat(n) && slices.Contains(r.provider.Texts, n.Role.plain()) &&
		isArray(n.Raw, member(n.Raw, "content")) {
		n.Edited = true
		r.repaired("V-D5", "content_as_text", n, "the content is a string instead of an array")
	}
}

// hideMedia turns what the server does not show into texts that name it.
func (r *repairer) hideMedia(n *Message, blocks []Block) {
	for i := range blocks {
		p := &blocks[i]
		switch {
		case p.Kind == Result:
			r.hideMedia(n, p.Content)
		case r.hides(p):
			if r.own(p) && r.provider.Blocks != nil {
				r.repaired("V-D9", "media_as_note", n, "the server shows no such block: it is a text")
			}
			n.makeText(p, substitute(p))
		}
	}
}

// hides reports whether the server shows no such block.
func (r *repairer) hides(p *Block) bool {
	switch p.Kind {
	case Image, File:
		files := r.provider.Blocks == nil || slices.Contains(r.provider.Blocks, "file")
		return r.provider.NoImages || p.Kind == File && !files
	case Opaque:
		return r.own(p) && hiddenBlock(r.provider, p.Raw)
	}
	return false
}

// hiddenBlock reports whether a server takes no blocks of a type.
func hiddenBlock(server *provider.Facts, raw []byte) bool {
	kind := stringMember(raw, "type")
	return server.Blocks != nil && kind != "" && !slices.Contains(server.Blocks, kind)
}

// plain returns the name that Chat Completions has for a role.
func (r Role) plain() string {
	return [...]string{User: "user", Assistant: "assistant", Tool: "tool", System: "system", Other: ""}[r]
}

func isArray(body []byte, at Span) bool { return at != (Span{}) && body[at.Start] == '[' }

// systemRule returns the rule against a system message that is not at the beginning.
func (r *repairer) systemRule() string {
	switch r.target {
	case session.OpenAIChat:
		return "V-D3"
	case session.AISDK:
		return "V-U7"
	}
	return "V-A12"
}

// fitOrder changes what the server of a dialect refuses of the order of messages.
func (r *repairer) fitOrder(list []Message) []Message {
	r.addReasoning(list)
	list = r.joinNeighbours(list)
	if r.provider.AnswersTools {
		list = r.answerTools(list)
	}
	return list
}

// noThought is the reasoning_content of a message that came without one. It is one space, because servers that require
// the member refuse an empty string.
const noThought = `" "`

// addReasoning gives messages of the assistant reasoning_content, or thinking, if the server requires it.
func (r *repairer) addReasoning(list []Message) {
	for i := range list {
		n := &list[i]
		isVoid := func(p Block) bool {
			return p.Kind == Reasoning && r.target == session.OpenAIChat && string(p.Text) == `""`
		}
		n.Blocks = slices.DeleteFunc(n.Blocks, isVoid)
		if n.Role != Assistant || n.has(Reasoning) || !r.provider.MustReason(r.Model, n.has(Call)) {
			continue
		}
		n.Blocks = append([]Block{{Kind: Reasoning, Text: []byte(noThought), Edited: true}}, n.Blocks...)
		if r.keeps(n) {
			rule, what := "V-D1", r.provider.ThoughtMember()
			if r.target == session.Anthropic {
				rule, what = "V-A7", "thinking"
			}
			r.repaired(rule, "reasoning_added", n, "a message of the assistant needs %s: it gets an empty one", what)
		}
		n.Edited = true
	}
}

// joinNeighbours joins messages in a row that a dialect takes one of only: those of one role, or of the system.
func (r *repairer) joinNeighbours(list []Message) []Message {
	if !r.provider.Alternates && !r.provider.OneSystem {
		return list
	}
	out := list[:0]
	for len(list) > 0 {
		first, n := &list[0], 1
		for n < len(list) && r.joins(first, &list[n]) {
			n++
		}
		if n > 1 {
			r.tellJoined(first, list[1:n])
			first.join(list[1:n])
		}
		out = append(out, *first)
		list = list[n:]
	}
	return out
}

// tellJoined tells of messages that are joined with the first one.
func (r *repairer) tellJoined(first *Message, others []Message) {
	rule := "V-D6"
	if first.Role == System {
		rule = "V-D3"
	}
	if r.keeps(first) {
		r.repaired(rule, "messages_joined", first, "the message after it, which has the same role, is joined with it")
	}
	for i := range others {
		r.repaired(rule, "messages_joined", &others[i],
			"it is joined with the message before it, which has the same role")
	}
}

func (r *repairer) joins(a, b *Message) bool {
	if a.Role == System || b.Role == System {
		return r.provider.OneSystem && a.Role == b.Role
	}
	return r.provider.Alternates && (a.Role == Assistant) == (b.Role == Assistant)
}

// join appends the blocks of the messages after this one. Texts of the system become one text.
func (n *Message) join(others []Message) {
	n.Blocks = slices.Clip(n.Blocks)
	n.Edited = true
	n.Extra, n.Name = nil, nil
	for i := range others {
		n.Blocks = append(n.Blocks, others[i].Blocks...)
		if n.Role == Tool && others[i].Role != Tool {
			n.Role = User
		}
	}
	if n.Role == System {
		texts := make([][]byte, len(n.Blocks))
		for i := range n.Blocks {
			texts[i] = substitute(&n.Blocks[i])
		}
		n.Blocks = []Block{{Kind: Text, Text: joinLines(texts), Edited: true}}
	}
}

// bridgeText is what the assistant says between results and the user where a server wants to hear it.
const bridgeText = "Understood."

// answerTools inserts a message of the assistant between results and what the user says.
func (r *repairer) answerTools(list []Message) []Message {
	for i := 1; i < len(list); i++ {
		if list[i-1].Role != Tool || list[i].Role == Tool || list[i].Role == Assistant {
			continue
		}
		r.repaired("V-D7", "assistant_added", &list[i],
			"a message of the assistant, %q, is inserted between results and this message", bridgeText)
		list = slices.Insert(list, i, assistantText(bridgeText))
	}
	return list
}

func assistantText(text string) Message {
	block := Block{Kind: Text, Text: rawjson.Quote(nil, []byte(text))}
	return Message{Role: Assistant, Blocks: []Block{block}, Edited: true}
}
