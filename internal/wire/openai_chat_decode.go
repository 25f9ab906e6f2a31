package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

func decodeChat(body []byte) []Message {
	s := &scanner{body: body}
	var v [chatMembers]Span
	n := Message{Extra: s.members(rawjson.Start(body), chatNames, v[:])}
	switch role := s.name(v[chatRole]); role {
	case "tool", "function":
		n.Role = Tool
		n.Blocks = []Block{s.chatResult(role, &v)}
		return []Message{n}
	default:
		n.Role, n.Name = s.openAIRole(v[chatRole], s.literal(v[chatName]))
	}
	if text := v[chatReasoning]; s.is(text, '"') && !s.empty(text) {
		n.Blocks = append(n.Blocks, Block{Kind: Reasoning, Text: text.Of(body)})
	}
	n.Blocks = s.pieces(n.Blocks, v[chatContent], s.chatPiece)
	if text := v[chatRefusal]; s.is(text, '"') && !s.empty(text) {
		n.Blocks = append(n.Blocks, Block{Kind: Text, Text: text.Of(body), Refusal: true})
	}
	n.Blocks = s.chatCallPieces(n.Blocks, &v)
	return []Message{n}
}

// members looks names up in an object as pick does, and returns its other members.
func (s *scanner) members(start int, names []string, values []Span) (others []byte) {
	for key, value := range rawjson.Members(s.body, start) {
		if i := s.index(names, key); i >= 0 {
			values[i] = value
		} else {
			others = appendExtra(others, key.Of(s.body), value.Of(s.body))
		}
	}
	return others
}

// others are the members of an object that have none of these names.
func (s *scanner) others(start int, names []string) []byte {
	return s.members(start, names, make([]Span, len(names)))
}

// openAIRole is the role of a message, and what Message.Name is of one that is said by name.
func (s *scanner) openAIRole(role Span, name []byte) (Role, []byte) {
	switch s.name(role) {
	case "user":
		return User, name
	case "assistant":
		return Assistant, name
	case "system", "developer":
		return System, name
	}
	return Other, role.Of(s.body)
}

// blocks appends the blocks of a content: of a string one, of an array one for each element.
func (s *scanner) pieces(dst []Block, at Span, read func(block Span) Block) []Block {
	switch {
	case s.empty(at):
	case s.is(at, '"'):
		dst = append(dst, Block{Kind: Text, Text: at.Of(s.body)})
	case s.is(at, '['):
		for element := range rawjson.Elements(s.body, at.Start) {
			dst = append(dst, read(element))
		}
	default:
		dst = append(dst, Block{Kind: Opaque, Raw: at.Of(s.body), Edited: true}) // nobody takes it where it stands
	}
	return dst
}

func (s *scanner) chatPiece(block Span) Block {
	p := Block{Kind: Opaque, Raw: block.Of(s.body)}
	if !s.is(block, '{') {
		return p
	}
	var v [chatBlockMembers]Span
	s.pick(block.Start, chatBlockNames, v[:])
	switch kind := v[chatBlockType]; {
	case s.isText(kind, "text") && s.is(v[chatBlockText], '"'):
		p.Kind, p.Text = Text, v[chatBlockText].Of(s.body)
	case s.isText(kind, "refusal") && s.is(v[chatBlockRefusal], '"'):
		p.Kind, p.Text, p.Refusal = Text, v[chatBlockRefusal].Of(s.body), true
	case s.isText(kind, "image_url"):
		p.Kind, p.Media = Image, s.chatImage(v[chatBlockImage])
	case s.isText(kind, "file"):
		p.Kind, p.Media = File, s.chatFile(v[chatBlockFile])
	case s.isText(kind, "input_audio"):
		p.Kind, p.Media = File, s.audio(v[chatBlockAudio])
	}
	return p
}

// chatImage reads image_url, which some clients write as the URL itself.
func (s *scanner) chatImage(at Span) (m Media) {
	var v [2]Span
	switch {
	case s.is(at, '"'):
		v[0] = at
	case s.is(at, '{'):
		s.pick(at.Start, imageURLNames, v[:])
	}
	m.Detail = s.literal(v[1])
	s.openAIURL(&m, v[0])
	return m
}

var chatFileNames = []string{"file_data", "file_id", "filename"}

func (s *scanner) chatFile(at Span) (m Media) {
	if !s.is(at, '{') {
		return m
	}
	var v [3]Span
	s.pick(at.Start, chatFileNames, v[:])
	m.ID, m.Name = s.literal(v[1]), s.literal(v[2])
	if !s.openAIData(&m, v[0]) {
		m.Data = s.literal(v[0])
	}
	return m
}

// openAIURL reads where an image is, or the image itself if the URL holds it.
func (s *scanner) openAIURL(m *Media, at Span) {
	if !s.openAIData(m, at) {
		m.URL = s.literal(at)
	}
}

// openAIData reads a URL that holds the data itself, and reports whether it is one.
func (s *scanner) openAIData(m *Media, at Span) bool {
	if !s.is(at, '"') {
		return false
	}
	mediaType, data, ok := dataURL(s.plain(at))
	if !ok {
		return false
	}
	if len(mediaType) > 0 {
		m.Type = rawjson.Quote(nil, mediaType)
	}
	m.Data = rawjson.Quote(make([]byte, 0, len(data)+2), data)
	return true
}

var audioNames = []string{"data", "format"}

// audio reads a sound, whose media type is told by the name of its format.
func (s *scanner) audio(at Span) (m Media) {
	if !s.is(at, '{') {
		return m
	}
	var v [2]Span
	s.pick(at.Start, audioNames, v[:])
	m.Data = s.literal(v[0])
	switch format := s.name(v[1]); format {
	case "":
	case "mp3":
		m.Type = []byte(`"audio/mpeg"`)
	default:
		m.Type = rawjson.Quote(nil, []byte("audio/"+format))
	}
	return m
}

func (s *scanner) chatResult(role string, v *[chatMembers]Span) Block {
	p := Block{Kind: Result, Name: s.literal(v[chatName])}
	if role == "function" {
		p.CallID = functionPrefix + s.name(v[chatName])
	} else {
		p.CallID = s.callID(v[chatToolCallID], nil)
	}
	p.Content = s.pieces(nil, v[chatContent], s.chatPiece)
	return p
}

// chatCallPieces appends the calls: those of tool_calls, or else that of function_call.
func (s *scanner) chatCallPieces(dst []Block, v *[chatMembers]Span) []Block {
	before := len(dst)
	if calls := v[chatToolCalls]; s.is(calls, '[') {
		dst = s.pieces(dst, calls, s.chatCallPiece)
	}
	if legacy := v[chatFunctionCall]; len(dst) == before && s.is(legacy, '{') {
		p := Block{Kind: Call, Raw: legacy.Of(s.body)}
		p.CallID = functionPrefix + s.name(s.chatCalled(&p, legacy))
		dst = append(dst, p)
	}
	return dst
}

func (s *scanner) chatCallPiece(at Span) Block {
	p := Block{Kind: Opaque, Raw: at.Of(s.body)}
	if !s.is(at, '{') {
		return p
	}
	var v [3]Span
	s.pick(at.Start, callNames, v[:])
	p.Kind, p.CallID = Call, s.callID(v[0], nil)
	if function, custom := v[1], v[2]; s.is(function, '{') {
		s.chatCalled(&p, function)
	} else if s.is(custom, '{') {
		s.chatCalled(&p, custom)
	}
	return p
}

// chatCalled reads the arguments of the object at, or the input of a custom tool, and its name, which it returns.
func (s *scanner) chatCalled(p *Block, at Span) (name Span) {
	var v [3]Span
	s.pick(at.Start, functionNames, v[:])
	p.Name = s.literal(v[0])
	if !s.absent(v[1]) {
		p.Value = s.arguments(v[1])
	} else if !s.absent(v[2]) {
		p.Value, p.Custom = s.freeText(v[2]), true
	}
	return v[0]
}

// argumentsDepth leaves room for the message that the arguments will stand in.
const argumentsDepth = session.MaxJSONDepth - 8

// arguments are the object in a string that holds one, any other value as it is: models write what is no JSON, and some
// servers the object itself.
func (s *scanner) arguments(at Span) []byte {
	value := at.Of(s.body)
	if value[0] != '"' || bytes.IndexByte(value, '{') < 0 {
		return value
	}
	text, ok := rawjson.Unquote(make([]byte, 0, len(value)), value)
	if !ok || rawjson.Check(text, rawjson.Limits{Depth: argumentsDepth}) != nil {
		return value
	}
	if object := rawjson.Value(text).Of(text); object[0] == '{' {
		return object
	}
	return value
}

// freeText is the input of a custom tool, as a string literal.
func (s *scanner) freeText(at Span) []byte {
	if s.is(at, '"') {
		return at.Of(s.body)
	}
	return rawjson.Quote(nil, at.Of(s.body))
}
