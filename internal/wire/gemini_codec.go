package wire

import (
	"bytes"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Gemini contents, as the types Content, Part, FunctionCall, FunctionResponse and Blob of Google's Gen AI SDKs
// (googleapis/go-genai, types.go) have them; snake_case is read, too.
//
//	role user, function, none    User; Tool if there is nothing but functionResponse
//	role model, assistant        Assistant
//	role system, developer       System: the API has systemInstruction apart; in a log it is {"role":"system","parts":[…]}
//	text                         Text; with thought, Reasoning
//	inlineData, fileData         Image if its type begins with image/, else File
//	functionCall                 Call; one without an id gets one of its name, and goes out without
//	functionResponse             Result: the text of a response of one member output, result, content, return_value or
//	                             error; of any other response its JSON as a text. Its parts are images and files
//	thoughtSignature             Signature
//	anything else                Opaque
//
// What other formats say and a content cannot:
//
//	arguments that are no object       {"input": …}, also the free text of a custom tool
//	texts of a result                  one text, a line each: {"output": "…"}, or {"error": "…"} if the tool failed
//	images and files of a result       a content of the user behind the results; only newer models take them inside
//	results before what the user says  a content of their own, all results of a turn in one
//	reasoning of other providers       a thought without signature; of one that is sealed a note
//	a speaker's name, a file's name    a note in front
//	anything that is Opaque            its JSON as a text
//
// {"input": …} stays an object when it is read again: many tools have a parameter of that name.

func decodeGemini(body []byte) []Message {
	s := &scanner{body: body}
	var v [2]Span
	n := Message{Extra: s.members(rawjson.Start(body), geminiNames, v[:])}
	role, parts := v[0], v[1]
	ids := functionIDs{}
	switch {
	case s.is(parts, '{'):
		n.Blocks = s.geminiPieces(nil, parts, ids)
		n.Blocks[0].Edited = true
	case s.is(parts, '['):
		for part := range rawjson.Elements(body, parts.Start) {
			n.Blocks = s.geminiPieces(n.Blocks, part, ids)
		}
	default:
		n.Blocks = s.pieces(nil, parts, nil)
	}
	s.geminiRole(&n, role)
	return []Message{n}
}

// appendExtra appends a member to those of Message.Extra.
func appendExtra(dst, key, value []byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return append(append(append(dst, key...), ':'), value...)
}

func (s *scanner) geminiRole(n *Message, role Span) {
	switch {
	case s.isText(role, "model"), s.isText(role, "assistant"):
		n.Role = Assistant
	case s.absent(role), s.isText(role, "user"), s.isText(role, "function"):
		isOther := func(p Block) bool { return p.Kind != Result }
		if len(n.Blocks) > 0 && !slices.ContainsFunc(n.Blocks, isOther) {
			n.Role = Tool
		}
	case s.isText(role, "system"), s.isText(role, "developer"):
		n.Role = System
	default:
		n.Role, n.Name = Other, role.Of(s.body)
	}
}

// geminiPieces reads a part. A block of one that the API would refuse is Edited from the beginning, so that, if its
// content has to be written anew, it is written as the API wants it.
func (s *scanner) geminiPieces(dst []Block, raw Span, ids functionIDs) []Block {
	kind, v := s.geminiBlock(raw)
	p := Block{Kind: kind, Raw: raw.Of(s.body), Signature: s.value(v[geminiSignature]), Thought: s.is(v[geminiThought], 't')}
	switch kind {
	case Text, Reasoning:
		p.Text = s.value(v[geminiText])
	case Call:
		s.geminiCallPiece(&p, v[geminiCall], ids)
	case Result:
		s.geminiResultPiece(&p, v[geminiResponse], ids)
	case Image, File:
		p.Media = s.geminiMedia(&v)
	default:
		s.geminiOther(&p, raw)
	}
	if kind != Text && kind != Reasoning && s.is(v[geminiText], '"') {
		p.Edited = true
		dst = append(dst, Block{Kind: Text, Text: s.value(v[geminiText]), Edited: true})
	}
	return append(dst, p)
}

func (s *scanner) geminiCallPiece(p *Block, at Span, ids functionIDs) {
	f := s.geminiFunction(at)
	p.CallID, p.Name = s.geminiCallID(0, "functionCall", &f, ids), s.literal(f[functionName])
	if p.Value = s.value(f[functionArgs]); p.Value == nil {
		p.Value = []byte("{}")
	}
	p.Edited = p.Value[0] != '{'
}

func (s *scanner) geminiResultPiece(p *Block, at Span, ids functionIDs) {
	f := s.geminiFunction(at)
	p.CallID, p.Name = s.geminiCallID(0, "functionResponse", &f, ids), s.literal(f[functionName])
	_, p.IsError = s.response(f[functionResult])
	p.Content = s.geminiContent(&f)
	p.Edited = !s.absent(f[functionResult]) && !s.is(f[functionResult], '{')
}

// geminiOther reads a part that is a bare text, or one that says nothing, which is a text, too. Of all others nothing is
// known.
func (s *scanner) geminiOther(p *Block, raw Span) {
	switch {
	case s.is(raw, '"'):
		p.Kind, p.Text, p.Edited = Text, raw.Of(s.body), true
	case !s.is(raw, '{'):
		p.Edited = true
	default:
		for key := range rawjson.Members(s.body, raw.Start) {
			if !partFacts[string(unquoted(key.Of(s.body)))] {
				return
			}
		}
		p.Kind, p.Text, p.Edited = Text, []byte(`""`), true
	}
}

// value is the JSON value at, nil if it is missing or null.
func (s *scanner) value(at Span) []byte {
	if s.absent(at) {
		return nil
	}
	return at.Of(s.body)
}

// literal is the string literal at, nil if there is none.
func (s *scanner) literal(at Span) []byte {
	if !s.is(at, '"') {
		return nil
	}
	return at.Of(s.body)
}

func (s *scanner) geminiContent(f *[functionMembers]Span) (content []Block) {
	if text := s.responseText(f[functionResult]); text != nil {
		content = append(content, Block{Kind: Text, Text: text})
	}
	if !s.is(f[functionParts], '[') {
		return content
	}
	for element := range rawjson.Elements(s.body, f[functionParts].Start) {
		p := Block{Kind: Opaque, Raw: element.Of(s.body)}
		if kind, v := s.geminiBlock(element); kind == Image || kind == File {
			p.Kind, p.Media = kind, s.geminiMedia(&v)
		}
		content = append(content, p)
	}
	return content
}

// responseNames are the members that, alone in a response, say nothing but that it is one.
var responseNames = []string{"output", "result", "content", "return_value", "error"}

// responseText is what a tool returned as a text, nil for nothing.
func (s *scanner) responseText(at Span) []byte {
	switch {
	case s.empty(at) || string(at.Of(s.body)) == "{}":
		return nil
	case s.is(at, '"'):
		return at.Of(s.body)
	case !s.is(at, '{'):
		return rawjson.Quote(nil, at.Of(s.body))
	}
	only, members := Span{}, 0
	for key, value := range rawjson.Members(s.body, at.Start) {
		if members++; members == 1 && s.index(responseNames, key) >= 0 {
			only = value
		}
	}
	switch {
	case members > 1 || only == Span{}:
		return rawjson.Quote(nil, at.Of(s.body))
	case s.empty(only):
		return nil
	case s.is(only, '"'):
		return only.Of(s.body)
	}
	return rawjson.Quote(nil, only.Of(s.body))
}

// geminiMedia reads inlineData or fileData.
func (s *scanner) geminiMedia(v *[geminiMembers]Span) Media {
	at := v[geminiInline]
	if !s.is(at, '{') {
		at = v[geminiFile]
	}
	blob := s.blob(at)
	m := Media{Type: s.literal(blob[blobType]), URL: s.literal(blob[blobURI]), Name: s.literal(blob[blobName])}
	if m.Data = s.literal(blob[blobData]); m.Data != nil {
		if data := standardBase64(s.plain(blob[blobData])); !bytes.Equal(data, m.Data[1:len(m.Data)-1]) {
			m.Data = rawjson.Quote(nil, data)
		}
	}
	return m
}
