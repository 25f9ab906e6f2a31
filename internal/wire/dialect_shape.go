package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// plainness is what a FastValidator knows of a view for servers that take less than most.
type plainness struct {
	common    bool // every server takes the messages and their order, as far as that was looked at
	headed    bool // there is a system message
	thought   bool // a message of the assistant has reasoning
	unthought bool // one has none
	reasoned  bool // Anthropic: it is known that each has some; states of older programs do not say
}

// addPlain adds the next message, before anything else is known of it.
func (v *FastValidator) addPlain(m *MessageShape, pinned bool) {
	p := &v.state.plain
	begun, last := v.state.begun, v.state.last
	byAssistant := m.Role == "assistant"
	switch {
	case !p.common:
	case v.format == session.Anthropic:
		alternates := !begun || pinned || byAssistant == (last != assistantSide)
		p.common = m.Flags&FlagCommon != 0 && alternates
	case v.format == session.OpenAIChat, v.format == session.AISDK:
		first := !begun && !pinned && m.Role != "user" && v.format == session.AISDK
		p.common = m.Flags&FlagCommon != 0 && !(pinned && (begun || p.headed)) && !first
	}
	p.headed = p.headed || pinned
	p.thought = p.thought || byAssistant && m.Flags&FlagReasoning != 0
	p.unthought = p.unthought || byAssistant && m.Flags&FlagReasoning == 0
	p.reasoned = p.reasoned && !p.unthought
}

// suits reports whether a server takes a view, as it is, that its format's own provider takes.
func (v *FastValidator) suits(server *provider.Facts, model string) bool {
	p := &v.state.plain
	if server.MaxMessages > 0 && v.messages > server.MaxMessages {
		return false
	}
	if server.Dialect == "" || server.Dialect == provider.OpenAI && v.format == session.OpenAIChat ||
		server.Dialect == provider.Anthropic && v.format == session.Anthropic {
		return true
	}
	switch {
	case !p.common || server.IDLength > 0 || server.SignsCalls && !provider.IsOlderGemini(model):
		return false
	case v.format == session.AISDK:
		mayEnd := !server.EndsWithUser(model) && server.Package != anthropicOwner // which wants no thought there
		ends := v.state.last != assistantSide || mayEnd
		return ends && !(v.state.late && server.CallsAfterUser)
	case v.format == session.Anthropic:
		return p.reasoned || !server.MustReason(model, true)
	case v.format != session.OpenAIChat:
		return true
	case server.Reasoning == provider.RefusesReasoning || server.ThoughtMember() != reasoningMember:
		return !p.thought
	}
	return !p.unthought || !server.MustReason(model, true)
}

// commonMembers are the members that every server of Chat Completions takes.
var commonMembers = []string{"role", "content", "tool_calls", "tool_call_id", reasoningMember}

// isCommonChat reports whether every server of Chat Completions takes the message, but for its reasoning.
func (s *scanner) isCommonChat(v *object) bool {
	m := &s.facts
	if s.strict || !v.onlyHas(commonMembers) || s.is(v.at("content"), '[') {
		return false
	}
	if reasoning := v.at(reasoningMember); reasoning != (Span{}) && m.Flags&FlagReasoning == 0 {
		return false
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == Call && !isObjectText(p.Value.Of(s.body)) {
			return false
		}
	}
	return m.Role == "system" || m.Role == "user" || m.Role == "assistant" || m.Role == "tool"
}

// isCommonUI reports whether every provider behind the AI SDK takes what its package makes of the message.
func (s *scanner) isCommonUI() bool {
	m := &s.facts
	said, thinks := false, false // thinks: with nothing behind it
	var steps stepOrder
	for i := range m.Parts {
		p := &m.Parts[i]
		thinks = p.Kind == Reasoning || thinks && p.Kind == Opaque
		said = said || m.isSaid(*p) || p.Kind == Call
		if steps.add(p, s.body); steps.late {
			return false
		}
		switch {
		case p.Kind == Text && blank(p.Value.Of(s.body)):
			return false
		case p.Kind == Call && !s.isCommonCall(p), p.Kind == File:
			return false
		case p.Kind == Image && (m.Role == "assistant" || s.has(p, "providerReference")):
			return false
		case p.Kind == Reasoning && s.isUncommonThought(p):
			return false
		case p.Kind == Opaque && !isAside(stringMember(p.Raw.Of(s.body), "type")):
			return false
		case p.Kind == Opaque:
			if name, ok := uiToolName(p.Raw.Of(s.body)); ok && !provider.TakenEverywhere(name) {
				return false
			}
		}
	}
	return said && !thinks
}

// stepOrder knows whether a UIMessage has calls in a step behind one without, which not every provider takes.
type stepOrder struct {
	said, called bool // in the step
	waits        bool // the step before it has no calls
	late         bool
}

func (o *stepOrder) add(p *Part, body []byte) {
	switch {
	case p.Kind == Call:
		o.called = true
		o.late = o.late || o.waits
	case p.Kind == Opaque && stringMember(p.Raw.Of(body), "type") == stepStart:
		if o.said || o.called {
			o.waits = !o.called
		}
		o.said, o.called = false, false
	case p.Kind == Text || p.Kind == Reasoning:
		o.said = true
	}
}

// has reports whether the bytes of a part may have a member.
func (s *scanner) has(p *Part, name string) bool {
	return bytes.Contains(p.Raw.Of(s.body), []byte(name))
}

// isUncommonThought reports whether a thought has no words, or a signature that is empty.
func (s *scanner) isUncommonThought(p *Part) bool {
	kept := valueOf(valueOf(p.Raw.Of(s.body), "providerMetadata"), "anthropic")
	return blank(p.Value.Of(s.body)) || kept != nil && string(valueOf(kept, "signature")) == `""`
}

func (s *scanner) isCommonCall(p *Part) bool {
	return len(p.CallID) <= chat.IDMax && provider.PlainID(p.CallID) && s.is(p.Value, '{') &&
		provider.TakenEverywhere(p.Name)
}
