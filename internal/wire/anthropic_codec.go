package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Anthropic messages, as MessageParam and the ContentBlockParams of Anthropic's SDKs have them
// (anthropics/anthropic-sdk-python, types), the beta ones included.
//
//	role user                      User; Tool if there is nothing but tool_result
//	role assistant                 Assistant
//	role system, developer         System: the API has system apart; in a log it is {"role":"system","content":…}
//	content: a string, text        Text
//	thinking                       Reasoning: thinking is the Text, signature the Signature; a text that is kept back is none
//	redacted_thinking              Reasoning without a Text: data is the Signature
//	tool_use                       Call
//	tool_result                    Result: content, a string or blocks, is the Content
//	image, document                Image, File: a source of type base64, url, file or text; title is the name
//	cache_control, citations, …    in Raw: they come back with their own block
//	server_tool_use and its results, mcp_tool_use, compaction, search_result, container_upload, anything else    Opaque
//
// What other formats say and a message cannot:
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

func decodeAnthropic(body []byte) []Message {
	s := &scanner{body: body}
	n := Message{}
	var role, content Span
	for key, value := range rawjson.Members(body, rawjson.Start(body)) {
		switch {
		case rawjson.KeyIs(body, key, "role"):
			role = value
		case rawjson.KeyIs(body, key, "content"):
			content = value
		default:
			n.Extra = appendExtra(n.Extra, key.Of(body), value.Of(body))
		}
	}
	n.Blocks = s.anthropicPieces(content)
	s.anthropicRole(&n, role)
	return []Message{n}
}

func (s *scanner) anthropicRole(n *Message, role Span) {
	switch {
	case s.isText(role, "assistant"):
		n.Role = Assistant
	case s.isText(role, "system"), s.isText(role, "developer"):
		n.Role = System
	case !s.isText(role, "user"):
		n.Role, n.Name = Other, role.Of(s.body)
	case len(n.Blocks) > 0 && onlyResults(n.Blocks):
		n.Role = Tool
	}
}

func onlyResults(pieces []Block) bool {
	for i := range pieces {
		if pieces[i].Kind != Result {
			return false
		}
	}
	return true
}

// anthropicPieces reads the content of a message or of a result: a string, or an array of blocks.
func (s *scanner) anthropicPieces(at Span) (pieces []Block) {
	switch {
	case s.empty(at):
	case s.is(at, '"'):
		return []Block{{Kind: Text, Text: at.Of(s.body)}}
	case s.is(at, '['):
		for element := range rawjson.Elements(s.body, at.Start) {
			pieces = append(pieces, s.anthropicPiece(element))
		}
	default:
		return []Block{{Kind: Opaque, Raw: at.Of(s.body), Edited: true}} // nobody takes it where it stands
	}
	return pieces
}

func (s *scanner) anthropicPiece(raw Span) Block {
	v := s.block(raw)
	p := Block{Kind: Opaque, Raw: raw.Of(s.body)}
	switch kind := v[blockType]; {
	case s.isText(kind, "text") && s.is(v[blockText], '"'):
		p.Kind, p.Text = Text, v[blockText].Of(s.body)
	case s.isText(kind, "tool_use"):
		p.Kind, p.CallID, p.Name = Call, s.identifier(v[blockID], intern), s.literal(v[blockName])
		if p.Value = s.value(v[blockInput]); p.Value == nil {
			p.Value = []byte("{}")
		}
	case s.isText(kind, "tool_result"):
		p.Kind, p.CallID, p.IsError = Result, s.identifier(v[blockToolUseID], intern), s.is(v[blockIsError], 't')
		p.Content = s.anthropicPieces(v[blockContent])
	case s.isText(kind, "thinking"):
		p.Kind, p.Signature = Reasoning, valueOf(p.Raw, "signature")
		if !s.empty(v[blockThinking]) {
			p.Text = s.literal(v[blockThinking])
		}
	case s.isText(kind, "redacted_thinking"):
		p.Kind, p.Signature = Reasoning, s.value(v[blockData])
	case s.isText(kind, "image"):
		s.anthropicMedia(&p, Image, v[blockSource])
	case s.isText(kind, "document"):
		s.anthropicMedia(&p, File, v[blockSource])
	}
	return p
}

// valueOf is the value of a member, nil if it is missing or null.
func valueOf(object []byte, name string) []byte {
	if at := member(object, name); at != (Span{}) {
		return at.Of(object)
	}
	return nil
}

const (
	sourceType = iota
	sourceMediaType
	sourceData
	sourceURL
	sourceFileID
	sourceMembers
)

var anthropicSourceNames = []string{"type", "media_type", "data", "url", "file_id"}

// anthropicMedia reads a source. A block whose source it does not know stays Opaque.
func (s *scanner) anthropicMedia(p *Block, kind Kind, source Span) {
	if !s.is(source, '{') {
		return
	}
	var v [sourceMembers]Span
	s.pick(source.Start, anthropicSourceNames, v[:])
	m := Media{Type: s.literal(v[sourceMediaType])}
	switch of := v[sourceType]; {
	case s.isText(of, "base64") && s.is(v[sourceData], '"'):
		m.Data = v[sourceData].Of(s.body)
	case s.isText(of, "url") && s.is(v[sourceURL], '"'):
		m.URL = v[sourceURL].Of(s.body)
	case s.isText(of, "file") && s.is(v[sourceFileID], '"'):
		m.ID = v[sourceFileID].Of(s.body)
	case s.isText(of, "text") && s.is(v[sourceData], '"'):
		m.Text = v[sourceData].Of(s.body)
	default:
		return
	}
	if title := valueOf(p.Raw, "title"); bytes.HasPrefix(title, []byte{'"'}) {
		m.Name = title
	}
	p.Kind, p.Media = kind, m
}
