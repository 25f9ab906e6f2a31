package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Servers of Chat Completions have four members for the assistant's reasoning. reasoning_content and reasoning are
// texts; reasoning_details (OpenRouter) and thinking_blocks (LiteLLM) are lists with signatures and encrypted data,
// which only these gateways read.

// reasoningMember is the member that most servers of Chat Completions other than OpenAI's have for reasoning.
const reasoningMember = "reasoning_content"

var (
	thoughtLists = []string{"reasoning_details", "thinking_blocks"}
	thoughtTexts = []string{"text", "summary", "thinking"} // of an element of one
	thoughtProof = []string{"signature", "data"}
)

// isSaid reports whether the value at is a text of at least one character.
func (s *scanner) isSaid(at Span) bool { return s.is(at, '"') && !s.empty(at) }

// chatThought puts a thought in front of the message: in the intermediate representation reasoning comes first.
func (s *scanner) chatThought(b *Block) {
	if b == nil {
		return
	}
	blocks := s.ir.message().Blocks
	last := len(blocks) - 1
	thought := blocks[last]
	copy(blocks[1:], blocks[:last])
	blocks[0] = thought
}

// chatOtherThoughts reads the members that have their numbers behind all other parts: those of stored messages must not
// change. What another member says already is neither counted nor shown again.
func (s *scanner) chatOtherThoughts(v *object) {
	said := v.at(reasoningMember)
	if at := v.at("reasoning"); s.isSaid(at) && !(s.isSaid(said) && string(at.Of(s.body)) == string(said.Of(s.body))) {
		if b := s.reasoning(at, at); b != nil && s.isSaid(said) {
			s.ir.message().Blocks = s.ir.message().Blocks[:len(s.ir.message().Blocks)-1]
		} else {
			s.chatThought(b)
		}
		said = at
	}
	for _, name := range thoughtLists {
		s.chatThoughtList(v.at(name), s.isSaid(said))
	}
}

// chatThoughtList reads a list of thoughts, whose texts another member may have said.
func (s *scanner) chatThoughtList(list Span, said bool) {
	part := Part{Kind: Reasoning, Raw: list, Value: list}
	var texts [][]byte
	for element := range s.elements(list) {
		thought := s.object(element)
		for _, name := range thoughtTexts {
			if at := thought.at(name); s.isSaid(at) && !said {
				part.Tokens += s.tokens(at)
				texts = append(texts, at.Of(s.body))
			}
		}
		for _, name := range thoughtProof {
			if at := thought.at(name); s.isSaid(at) {
				part.Tokens += s.encrypted(at)
			}
		}
	}
	switch {
	case s.ir == nil && part.Tokens > 0:
		s.add(part)
	case s.ir != nil && len(texts) > 0:
		b := s.add(part)
		b.Raw, b.Text = list.Of(s.body), joinLines(texts)
		s.chatThought(b)
	}
}

// thinkingBlock is the type of a block of a content that is a thought, as Mistral has it.
const thinkingBlock = "thinking"

// chatThinking reads such a block, which has a text or a list of texts. Facts have it as an unknown block, as messages
// were stored with it.
func (s *scanner) chatThinking(raw, at Span) {
	var texts [][]byte
	if s.is(at, '"') {
		texts = append(texts, at.Of(s.body))
	}
	for element := range s.elements(at) {
		if text := s.inner(element, "text"); s.is(text, '"') {
			texts = append(texts, text.Of(s.body))
		}
	}
	s.reasoning(raw, Span{}).Text = joinLines(texts)
}

// isInContent reports whether a thought is written in the content, where it came from.
func (e *encoder) isInContent(p *Block) bool { return e.own(p) && p.Raw[0] == '{' }

// isThinking reports whether a block is a thought that came in the content of a message of Chat Completions.
func (r *repairer) isThinking(p Block) bool {
	return p.Kind == Reasoning && r.own(&p) && p.Raw[0] == '{'
}

// isInList reports whether a thought is written by the list that it was read from.
func (e *encoder) isInList(p *Block) bool { return e.own(p) && p.Raw[0] == '[' }

// thoughtMember returns the member that a message has its reasoning in.
func (e *encoder) thoughtMember(n *Message) string {
	reads := e.server != nil && e.server.Reasoning != provider.IgnoresReasoning
	own := n.Format == session.OpenAIChat && n.Raw != nil
	switch {
	case reads:
		return e.server.ThoughtMember()
	case own && !isSigned(valueOf(n.Raw, reasoningMember)) && isSigned(valueOf(n.Raw, "reasoning")):
		return "reasoning"
	}
	return reasoningMember
}

// fitReasoning writes reasoning where the server reads it, and turns it into texts unless the server shows it to its
// model. Reasoning that came in this format stays as it is where the server ignores it.
func (r *repairer) fitReasoning(n *Message) {
	own := n.Format == r.target && n.Raw != nil
	way := r.provider.Reasoning
	switch {
	case n.Role != Assistant:
	case own && way == provider.IgnoresReasoning:
		r.moveThinking(n)
	case way == provider.IgnoresReasoning || way == provider.RefusesReasoning:
		r.tellReasoning(n, own)
	case own:
		r.renameReasoning(n)
	}
}

// moveThinking moves thoughts out of the content, where the server takes none, to the member that it ignores.
func (r *repairer) moveThinking(n *Message) {
	for i := range n.Blocks {
		if p := &n.Blocks[i]; r.isThinking(*p) && hiddenBlock(r.provider, p.Raw) {
			p.Edited, n.Edited = true, true
			r.repaired("V-D9", "reasoning_renamed", n, "thinking is in reasoning_content, and not in the content")
		}
	}
}

// tellReasoning turns reasoning into texts, but for thinking in the content of a server that takes it there.
func (r *repairer) tellReasoning(n *Message, own bool) {
	kept := func(p Block) bool {
		return r.isThinking(p) && r.provider.Blocks != nil && !hiddenBlock(r.provider, p.Raw)
	}
	has := func(name string) bool { return hasMember(n.Raw, name) }
	told := own && (slices.ContainsFunc(provider.ThoughtMembers, has) || slices.ContainsFunc(thoughtLists, has) ||
		slices.ContainsFunc(n.Blocks, func(p Block) bool { return r.isThinking(p) && !kept(p) }))
	n.Blocks = slices.DeleteFunc(n.Blocks, func(p Block) bool {
		return p.Kind == Reasoning && p.Text != nil && blank(p.Text) && !kept(p)
	})
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Reasoning && !kept(*p) {
			n.makeText(p, substitute(p))
		}
	}
	if !told {
		return
	}
	n.Edited, n.Extra = true, othersOf(n.extras(), thoughtLists...)
	r.repaired("V-D1", "reasoning_as_text", n, "reasoning, which the server refuses, is a text")
}

// renameReasoning gives reasoning the name that the server reads.
func (r *repairer) renameReasoning(n *Message) {
	name := r.provider.ThoughtMember()
	if isSigned(valueOf(n.Raw, name)) && !r.hasOtherThoughts(n.Raw) && !slices.ContainsFunc(n.Blocks, r.isThinking) {
		return
	}
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Reasoning && !(r.provider.ThoughtLists && p.Raw != nil && p.Raw[0] == '[') {
			p.Edited, n.Edited = true, true
		}
	}
	if n.Edited = n.Edited || r.hasOtherThoughts(n.Raw); !n.Edited || !n.has(Reasoning) {
		return
	}
	if !r.provider.ThoughtLists {
		n.Extra = othersOf(n.extras(), thoughtLists...)
	}
	r.repaired("V-D1", "reasoning_renamed", n, "reasoning is in %s, which the server reads", name)
}

// hasOtherThoughts reports whether a message has reasoning as a text under a name that the server does not read.
func (r *repairer) hasOtherThoughts(message []byte) bool { return otherThoughts(r.provider, message) }

func otherThoughts(server *provider.Facts, message []byte) bool {
	return slices.ContainsFunc(provider.ThoughtMembers, func(name string) bool {
		return name != server.ThoughtMember() && isSigned(valueOf(message, name))
	})
}

// hasMember reports whether an object has a member, be it null.
func hasMember(object []byte, name string) bool {
	for key := range rawjson.Members(object, rawjson.Start(object)) {
		if rawjson.KeyIs(object, key, name) {
			return true
		}
	}
	return false
}

// reasoningFits checks V-D1.
func (c *checker) reasoningFits() {
	for i, body := range c.bodies {
		if c.messages[i].Role != "assistant" {
			continue
		}
		has := func(name string) bool { return hasMember(body, name) }
		calls := c.messages[i].count(Call) > 0
		switch c.server.Reasoning {
		case provider.IgnoresReasoning:
			continue
		case provider.RefusesReasoning:
			if slices.ContainsFunc(provider.ThoughtMembers, has) {
				c.report(i, "the server refuses reasoning")
			}
			continue
		}
		switch {
		case otherThoughts(c.server, body):
			c.report(i, "reasoning is not in %s, which the server reads", c.server.ThoughtMember())
		case c.server.MustReason(c.Model, calls) && !isSigned(valueOf(body, c.server.ThoughtMember())):
			c.report(i, "the message has no %s, which the server requires", c.server.ThoughtMember())
		}
	}
}
