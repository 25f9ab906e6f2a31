package wire

import (
	"bytes"
	"fmt"

	"github.com/varve-dev/varve/internal/rawjson"
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
// What other formats can express and a message cannot:
//
//	reasoning of other providers                   a text, of one that is sealed a note: a signature cannot be made
//	arguments that are no object                   {"input": …}, also the free text of a custom tool
//	images of other types, files but PDF and text  a note
//	images and files of the assistant's            a note
//	an image's name                                a note in front
//	a speaker's name                               a note in front
//	a refusal                                      a text
//	a text of nothing                              nothing: it is refused
//	anything that is Opaque                        its JSON as a text
//
// {"input": …} stays an object when it is read again: many tools have a parameter of that name.

// The members of a message.
const (
	anthropicRole = iota
	anthropicContent
	anthropicMembers
)

var anthropicNames = []string{"role", "content"}

func (s *scanner) anthropic(top int) {
	var v [anthropicMembers]Span
	s.pickMessage(top, anthropicNames, v[:])
	s.role(v[anthropicRole])
	s.facts.StartsUnit = true
	i := 0
	s.content(v[anthropicContent], func(block Span) {
		s.anthropicBlock(i, block)
		i++
	})
	s.setRole(v[anthropicRole])
	s.setResultRole()
}

// anthropicBlock reads content block i. Tools that the provider runs itself (server_tool_use and its *_tool_result) are
// Opaque: call and result are in one message, and must stay together.
func (s *scanner) anthropicBlock(i int, raw Span) {
	v := s.block(raw)
	kind := v[blockType]
	switch {
	case s.equals(kind, "text") && s.is(v[blockText], '"'):
		s.text(raw, v[blockText])
	case s.equals(kind, "tool_use"):
		s.toolUse(i, raw, &v)
	case s.equals(kind, "tool_result"):
		s.toolResult(i, raw, &v)
	case s.equals(kind, "thinking"):
		s.thinking(raw, v[blockThinking])
	case s.equals(kind, "redacted_thinking"):
		data := v[blockData]
		b := s.add(Part{Kind: Reasoning, Raw: raw, Value: data, Tokens: s.encrypted(data)})
		if b != nil {
			b.Text = nil
			b.Signature = s.value(data)
		}
	case s.equals(kind, "image"):
		b := s.add(Part{Kind: Image, Raw: raw, Tokens: s.imageTokens(v[blockSource])})
		s.anthropicMedia(b, v[blockSource])
	case s.equals(kind, "document"):
		b := s.add(Part{Kind: File, Raw: raw, Tokens: s.documentTokens(v[blockSource])})
		s.anthropicMedia(b, v[blockSource])
	default:
		s.opaque(raw)
	}
}

func (s *scanner) toolUse(i int, raw Span, v *[blockMembers]Span) {
	call := Part{Kind: Call, Raw: raw, Value: v[blockInput], Name: s.toolName(v[blockName])}
	call.CallID = s.callID(v[blockID], func() string { return fmt.Sprintf("/content/%d/id", i) })
	call.Tokens = s.tokens(v[blockName]) + s.tokens(v[blockInput])
	b := s.add(call)
	if b == nil {
		return
	}
	b.Name = s.literal(v[blockName])
	if b.Value == nil {
		b.Value = []byte("{}")
	}
}

func (s *scanner) toolResult(i int, raw Span, v *[blockMembers]Span) {
	result := Part{Raw: raw, Value: v[blockContent], IsError: s.is(v[blockIsError], 't')}
	result.CallID = s.callID(v[blockToolUseID], func() string { return fmt.Sprintf("/content/%d/tool_use_id", i) })
	s.facts.StartsUnit = s.facts.StartsUnit && s.facts.Role != "user"
	s.result(result, v[blockContent], func(inner Span) { s.anthropicBlock(0, inner) })
}

func (s *scanner) thinking(raw, text Span) {
	b := s.add(Part{Kind: Reasoning, Raw: raw, Value: text, Tokens: s.later(text)})
	if b == nil {
		return
	}
	b.Signature = valueOf(b.Raw, "signature")
	b.Text = nil
	if !s.empty(text) {
		b.Text = s.literal(text)
	}
}

// The members of a source.
const (
	sourceType = iota
	sourceMediaType
	sourceData
	sourceURL
	sourceFileID
	sourceContent
	sourceMembers
)

var sourceNames = []string{"type", "media_type", "data", "url", "file_id", "content"}

func (s *scanner) source(at Span) (v [sourceMembers]Span) {
	if s.is(at, '{') {
		s.pick(at.Start, sourceNames, v[:])
	}
	return v
}

// anthropicMedia reads the source of the image or file b, which is Opaque if the source is of an unknown type. It does
// nothing if b is nil.
func (s *scanner) anthropicMedia(b *Block, source Span) {
	if b == nil {
		return
	}
	v := s.source(source)
	m := Media{Type: s.literal(v[sourceMediaType])}
	of := v[sourceType]
	switch {
	case s.equals(of, "base64") && s.is(v[sourceData], '"'):
		m.Data = v[sourceData].Of(s.body)
	case s.equals(of, "url") && s.is(v[sourceURL], '"'):
		m.URL = v[sourceURL].Of(s.body)
	case s.equals(of, "file") && s.is(v[sourceFileID], '"'):
		m.ID = v[sourceFileID].Of(s.body)
	case s.equals(of, "text") && s.is(v[sourceData], '"'):
		m.Text = v[sourceData].Of(s.body)
	default:
		b.Kind = Opaque
		return
	}
	if title := valueOf(b.Raw, "title"); bytes.HasPrefix(title, []byte{'"'}) {
		m.Name = title
	}
	b.Media = m
}

// imageTokens returns the cost of an image: by its size if it is in the message, else that of an unknown one.
func (s *scanner) imageTokens(source Span) int {
	v := s.source(source)
	if !s.equals(v[sourceType], "base64") || !s.is(v[sourceData], '"') {
		return tokens.Unknown
	}
	return tokens.AreaImage(s.measure(v[sourceData]))
}

// documentTokens returns the cost of a document: by its text if it is one, else that of an unknown file.
func (s *scanner) documentTokens(source Span) int {
	v := s.source(source)
	switch {
	case s.equals(v[sourceType], "text"):
		return s.tokens(v[sourceData])
	case s.equals(v[sourceType], "content"):
		return s.tokens(v[sourceContent])
	}
	return tokens.Unknown
}

func markedBlocks(object []byte, yield func([]byte) bool) bool {
	content := member(object, "content")
	if content == (Span{}) || object[content.Start] != '[' {
		return true
	}
	for at := range rawjson.Elements(object, content.Start) {
		block := at.Of(object)
		if member(block, "cache_control") != (Span{}) && !yield(block) || !markedBlocks(block, yield) {
			return false
		}
	}
	return true
}

func emptyCompaction(block []byte) bool {
	return isType(block, "compaction") && string(valueOf(block, "content")) == `""`
}
