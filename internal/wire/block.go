package wire

import "github.com/varve-dev/varve/internal/rawjson"

// The members of content blocks that either format gives a meaning to.
const (
	blockType = iota
	blockText
	blockThinking
	blockData
	blockID
	blockName
	blockInput
	blockToolUseID
	blockContent
	blockIsError
	blockRefusal
	blockSource
	blockImageURL
	blockMembers
)

var blockNames = []string{"type", "text", "thinking", "data", "id", "name", "input", "tool_use_id", "content", "is_error", "refusal", "source", "image_url"}

// block reads the content block at. A block that is no object, or has no type, has no members either.
func (s *scanner) block(at Span) (values [blockMembers]Span) {
	if s.is(at, '{') {
		s.pick(at.Start, blockNames, values[:])
	}
	return values
}

// text adds the text whose literal is at, inside the block raw.
func (s *scanner) text(raw, at Span) {
	s.add(Part{Kind: Text, Raw: raw, Value: at, Tokens: s.later(at)})
	if s.empty(at) {
		s.facts.Flags |= FlagEmptyText
	}
}

func (s *scanner) opaque(raw Span) {
	s.add(Part{Kind: Opaque, Raw: raw, Tokens: s.tokens(raw)})
}

// content adds a part for a content string, or one for each element of a content array by way of add. Any other content
// but null is kept as one Opaque part.
func (s *scanner) content(at Span, add func(element Span)) {
	switch {
	case s.absent(at):
	case s.is(at, '"'):
		if at.End-at.Start > 2 {
			s.text(at, at)
		}
	case s.is(at, '['):
		empty := true
		for element := range rawjson.Elements(s.body, at.Start) {
			add(element)
			empty = false
		}
		if empty {
			s.facts.Flags |= FlagEmptyArray
		}
	default:
		s.opaque(at)
		s.loose = true
	}
}

// result adds a tool result. Its Value is the zero Span if there is nothing that could be replaced.
func (s *scanner) result(p Part) {
	p.Kind = Result
	if s.absent(p.Value) {
		p.Value = Span{}
	} else {
		p.Tokens = s.resultTokens(p.Value)
	}
	s.add(p)
}

func (s *scanner) resultTokens(at Span) int {
	switch {
	case s.is(at, '"'):
		return s.later(at)
	case !s.is(at, '['):
		s.facts.Flags |= FlagResultNotText
		return s.tokens(at)
	}
	total, empty := 0, true
	for element := range rawjson.Elements(s.body, at.Start) {
		empty = false
		v := s.block(element)
		switch {
		case s.isText(v[blockType], "text") && s.is(v[blockText], '"'):
			total += s.tokens(v[blockText])
			continue
		case s.binary(v[blockType]):
			total += s.mediaTokens(&v)
			s.facts.Flags |= FlagImage
		default:
			total += s.tokens(element)
		}
		s.facts.Flags |= FlagResultNotText
	}
	if empty {
		s.facts.Flags |= FlagEmptyArray
	}
	return total
}
