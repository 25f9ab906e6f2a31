package wire

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/varve-dev/varve/internal/tokens"
)

// Anthropic messages, as MessageParam and the ContentBlockParams of Anthropic's SDKs have them
// (anthropics/anthropic-sdk-python, types), the beta ones included.
//
//	role user                    User; Tool if there is nothing but tool_result
//	role assistant               Assistant
//	role system, developer       System: the API has a separate system; in a log it is {"role":"system","content":…}
//	content: a string, text      Text
//	thinking                     Reasoning: thinking is the Text, which may be missing, signature the Signature
//	redacted_thinking            Reasoning without a Text: data is the Signature
//	tool_use                     Call
//	tool_result                  Result: content, a string or blocks, is the Content
//	image, document              Image, File: a source of type base64, url, file or text; title is the name
//	cache_control, citations, …  in Raw: they come back with their own block
//	server_tool_use and its
//	results, mcp_tool_use,
//	compaction, search_result,
//	container_upload, anything
//	else                         Opaque
//
// docs/formats.md has what becomes of what other formats can express and this one cannot.

func (s *scanner) anthropic(top Span) {
	s.top = s.object(top)
	v := &s.top
	s.role(v.at("role"))
	s.keepOthers(v, "role", "content")
	s.facts.StartsUnit = true
	i := 0
	s.content(v.at("content"), func(block Span) {
		s.anthropicBlock(i, block)
		i++
	})
	if s.ir != nil {
		s.ir.message().setResultRole()
	}
}

// anthropicBlock reads content block i. Tools that the provider runs itself (server_tool_use and its *_tool_result) are
// Opaque: call and result are in one message, and must stay together.
func (s *scanner) anthropicBlock(i int, raw Span) {
	v := s.object(raw)
	kind := v.at("type")
	s.cites(&v, "citations")
	s.mark(&v)
	s.state = s.state || s.isUnread(&v)
	switch {
	case s.equals(kind, "text") && s.is(v.at("text"), '"'):
		s.text(raw, v.at("text"))
		s.loose = s.loose || s.inside && s.empty(v.at("text"))
	case s.equals(kind, "tool_use"):
		s.toolUse(i, raw, &v)
	case s.equals(kind, "tool_result"):
		s.toolResult(i, raw, &v)
	case s.equals(kind, "thinking"):
		s.thinking(raw, v.at("thinking"))
	case s.equals(kind, "redacted_thinking"):
		data := v.at("data")
		b := s.add(Part{Kind: Reasoning, Raw: raw, Value: data, Tokens: s.encrypted(data)})
		if b != nil {
			b.Text = nil
			b.Signature = s.value(data)
		}
	case s.equals(kind, "image"):
		s.anthropicMedia(Image, raw, v.at("source"))
	case s.equals(kind, "document"):
		s.anthropicMedia(File, raw, v.at("source"))
	default:
		s.state = true
		s.opaque(raw)
	}
}

// isUnread reports whether a block has blocks inside that are not read.
func (s *scanner) isUnread(v *object) bool {
	return s.is(v.at("content"), '[') && !s.equals(v.at("type"), "tool_result")
}

// mark notes that a block may have a mark for the provider's cache: one of its own, or one in blocks that nobody reads.
func (s *scanner) mark(v *object) {
	if s.ir != nil && (s.isUnread(v) || !s.absent(v.at("cache_control"))) {
		s.ir.marked = true
	}
}

func (s *scanner) toolUse(i int, raw Span, v *object) {
	call := Part{Raw: raw, Value: v.at("input"), Name: s.toolName(v.at("name"))}
	call.CallID = s.callID(v.at("id"), func() string { return fmt.Sprintf("/content/%d/id", i) })
	s.loose = s.loose || !s.is(call.Value, '{')
	b := s.call(call, v.at("name"))
	if b == nil {
		return
	}
	b.loose = !s.is(call.Value, '{')
	if b.Value == nil {
		b.Value = []byte("{}")
	}
	b.Value = objectIn(b.Value) // some clients write the object into a text
}

func (s *scanner) toolResult(i int, raw Span, v *object) {
	result := Part{Raw: raw, Value: v.at("content"), IsError: s.is(v.at("is_error"), 't')}
	result.CallID = s.callID(v.at("tool_use_id"), func() string { return fmt.Sprintf("/content/%d/tool_use_id", i) })
	s.facts.StartsUnit = s.facts.StartsUnit && s.facts.Role != "user"
	s.result(result, result.Value, func(inner Span) { s.anthropicBlock(0, inner) })
	s.loose = s.loose || result.IsError && s.facts.Flags&FlagResultNotText != 0
}

func (s *scanner) thinking(raw, text Span) {
	b := s.reasoning(raw, text)
	if b == nil {
		return
	}
	b.Signature = valueOf(b.Raw, "signature")
	b.Text = nil
	if !s.empty(text) {
		b.Text = s.literal(text)
	}
}

// anthropicMedia adds an image or a document, whose block is Opaque if its source is of an unknown type.
func (s *scanner) anthropicMedia(kind Kind, raw, source Span) {
	v := s.object(source)
	s.loose = s.loose || s.facts.Role == "assistant" || !s.isShown(kind, &v)
	s.show(kind, raw)
	b := s.add(Part{Kind: kind, Raw: raw, Tokens: s.sourceTokens(kind, &v)})
	if b == nil {
		return
	}
	m := Media{Type: s.literal(v.at("media_type"))}
	of := v.at("type")
	switch {
	case s.equals(of, "base64") && s.is(v.at("data"), '"'):
		m.Data = s.literal(v.at("data"))
	case s.equals(of, "url") && s.is(v.at("url"), '"'):
		s.readURL(&m, v.at("url"))
	case s.equals(of, "file") && s.is(v.at("file_id"), '"'):
		m.ID = s.literal(v.at("file_id"))
	case s.equals(of, "text") && s.is(v.at("data"), '"'):
		m.Text = s.literal(v.at("data"))
	default:
		b.Kind = Opaque
		return
	}
	if title := valueOf(b.Raw, "title"); bytes.HasPrefix(title, []byte{'"'}) {
		m.Name = title
	}
	b.Media = m
}

// isShown reports whether the API takes the media type of an image or a document, if it is in the message.
func (s *scanner) isShown(kind Kind, source *object) bool {
	if !s.equals(source.at("type"), "base64") {
		return true
	}
	media := source.at("media_type")
	return s.is(media, '"') && slices.Contains(anthropicTypes(kind == Image), string(s.plain(media)))
}

// sourceTokens returns the cost of an image by its size, and of a document by its text, if they are in the message;
// else that of an unknown one.
func (s *scanner) sourceTokens(kind Kind, source *object) int {
	of, data := source.at("type"), source.at("data")
	switch {
	case kind == Image && s.equals(of, "base64") && s.is(data, '"'):
		return tokens.AreaImage(s.measure(data))
	case kind == File && s.equals(of, "base64"):
		return s.fileTokens(data, "", tokens.CostsOfAnthropic)
	case kind == File && s.equals(of, "text"):
		return s.tokens(data)
	case kind == File && s.equals(of, "content"):
		return s.tokens(source.at("content"))
	}
	return tokens.Unknown
}

// blocksInside yields the blocks of the content of a message or a result, and those inside them.
func blocksInside(object []byte) iter.Seq[[]byte] {
	return func(yield func(block []byte) bool) { yieldBlocks(object, yield) }
}

func yieldBlocks(object []byte, yield func(block []byte) bool) bool {
	for block := range elementsOf(object, "content") {
		if !yield(block) || !yieldBlocks(block, yield) {
			return false
		}
	}
	return true
}

func emptyCompaction(block []byte) bool {
	return isType(block, "compaction") && string(valueOf(block, "content")) == `""`
}
