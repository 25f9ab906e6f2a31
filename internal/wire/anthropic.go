package wire

import "fmt"

var anthropicNames = []string{"role", "content"}

func (s *scanner) anthropic(top int) {
	var v [2]Span
	s.pick(top, anthropicNames, v[:])
	s.role(v[0])
	s.facts.StartsUnit = true
	i := 0
	s.content(v[1], func(block Span) {
		s.anthropicBlock(i, block)
		i++
	})
}

// anthropicBlock reads one content block. Tools that the provider runs itself (server_tool_use and its *_tool_result)
// are Opaque: call and result stand in one message and are not ours to part.
func (s *scanner) anthropicBlock(i int, raw Span) {
	v := s.block(raw)
	switch kind := v[blockType]; {
	case s.isText(kind, "text") && s.is(v[blockText], '"'):
		s.text(raw, v[blockText])
	case s.isText(kind, "tool_use"):
		id := s.callID(v[blockID], func() string { return fmt.Sprintf("/content/%d/id", i) })
		tokens := s.tokens(v[blockName]) + s.tokens(v[blockInput])
		s.add(Part{Kind: Call, Raw: raw, Value: v[blockInput], CallID: id, Name: s.name(v[blockName]), Tokens: tokens})
	case s.isText(kind, "tool_result"):
		id := s.callID(v[blockToolUseID], func() string { return fmt.Sprintf("/content/%d/tool_use_id", i) })
		failed := s.is(v[blockIsError], 't')
		s.result(Part{Raw: raw, Value: v[blockContent], CallID: id, IsError: failed})
		s.facts.StartsUnit = s.facts.StartsUnit && s.facts.Role != "user"
	case s.isText(kind, "thinking"):
		s.add(Part{Kind: Reasoning, Raw: raw, Value: v[blockThinking], Tokens: s.later(v[blockThinking])})
	case s.isText(kind, "redacted_thinking"):
		s.add(Part{Kind: Reasoning, Raw: raw, Value: v[blockData], Tokens: s.encrypted(v[blockData])})
	case s.isText(kind, "image"):
		s.add(Part{Kind: Image, Raw: raw, Tokens: s.imageTokens(v[blockSource])})
	case s.isText(kind, "document"):
		s.add(Part{Kind: File, Raw: raw, Tokens: s.documentTokens(v[blockSource])})
	default:
		s.opaque(raw)
	}
}

// encrypted estimates the tokens of a text of which the message holds only its encryption, in base64: four bytes for three,
// and about four of those to a token.
func (s *scanner) encrypted(at Span) int {
	if s.empty(at) {
		return 0
	}
	return ((at.End-at.Start-len(`""`))*3 + 15) / 16
}
