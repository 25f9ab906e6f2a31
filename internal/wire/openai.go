package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

// What the two formats of OpenAI have in common.

// refusal adds the refusal whose literal is at. A result must not hold any.
func (s *scanner) refusal(raw, at Span) {
	if s.inside {
		s.facts.Flags |= FlagResultNotText
	}
	if b := s.text(raw, at); b != nil {
		b.Refusal = true
	}
}

// openAICall adds a call. The arguments of a custom tool are a free text.
func (s *scanner) openAICall(part Part, name Span, custom bool) *Block {
	s.loose = s.loose || !s.is(part.Value, '"')
	b := s.call(part, name)
	switch {
	case b == nil:
		return nil
	case custom:
		b.Value = s.freeText(part.Value)
		b.Custom = true
	case s.empty(part.Value):
		b.Value = []byte("{}") // models that pass no arguments write nothing
	default:
		b.Value = s.arguments(part.Value)
	}
	b.loose = !s.is(part.Value, '"')
	return b
}

// openAIFile reads the members of a file.
func (s *scanner) openAIFile(v *object) Media {
	m := Media{ID: s.literal(v.at("file_id")), Name: s.literal(v.at("filename"))}
	if data := v.at("file_data"); !s.readData(&m, data) {
		m.Data = s.literal(data)
	}
	return m
}

// audio reads a sound. The name of its format tells its media type.
func (s *scanner) audio(at Span) (m Media) {
	v := s.object(at)
	m.Data = s.literal(v.at("data"))
	switch format := s.name(v.at("format")); format {
	case "":
	case "mp3":
		m.Type = []byte(`"audio/mpeg"`)
	default:
		m.Type = rawjson.Quote(nil, []byte("audio/"+format))
	}
	return m
}

// soundTokens returns the cost of input_audio.
func (s *scanner) soundTokens(at Span) int {
	return s.fileTokens(s.inner(at, "data"), "audio/", tokens.CostsOfOpenAI)
}

// argumentsDepth leaves room for the message around the arguments.
const argumentsDepth = session.MaxJSONDepth - 8

// arguments returns the object in a string that holds one, any other value as it is: models write what is no JSON, and
// some servers the object itself.
func (s *scanner) arguments(at Span) []byte { return objectIn(at.Of(s.body)) }

func objectIn(value []byte) []byte {
	if value[0] != '"' || bytes.IndexByte(value, '{') < 0 {
		return value
	}
	text, ok := rawjson.Unquote(make([]byte, 0, len(value)), value)
	if !ok || rawjson.Check(text, rawjson.Limits{Depth: argumentsDepth}) != nil {
		return value
	}
	if object := bytes.Trim(text, " \t\r\n"); object[0] == '{' {
		return object
	}
	return value
}

// isObjectText reports whether arguments are a text that is the JSON of an object, or that object.
func isObjectText(value []byte) bool { return len(value) > 0 && objectIn(value)[0] == '{' }

// rawArguments returns the arguments of a call of Chat Completions as they are written.
func rawArguments(call []byte) []byte {
	if function := valueOf(call, "function"); function != nil {
		return valueOf(function, "arguments")
	}
	return valueOf(call, "arguments")
}

// freeText returns the input of a custom tool as a string literal.
func (s *scanner) freeText(at Span) []byte {
	switch {
	case s.absent(at):
		return []byte(`""`)
	case s.is(at, '"'):
		return at.Of(s.body)
	}
	return rawjson.Quote(nil, at.Of(s.body))
}

// openAIContent appends a content or an output: a string if it is one text that came without a block, else an array
// of what block appends.
func (e *encoder) openAIContent(
	dst []byte, said []*Block, role Role, block func(dst []byte, p *Block, role Role) []byte,
) []byte {
	switch {
	case len(said) == 0:
		return append(dst, `""`...)
	case len(said) == 1 && said[0].Kind == Text && !e.own(said[0]) && !(said[0].Refusal && role == Assistant):
		return append(dst, said[0].Text...)
	}
	dst = append(dst, '[')
	first := len(dst)
	for _, p := range said {
		dst = block(separate(dst, first), p, role)
	}
	return append(dst, ']')
}

// sizeOf returns about how many bytes blocks take. It does not look at the whole message: that may hold thousands.
func sizeOf(blocks []*Block) (size int) {
	for _, p := range blocks {
		size += 64 + max(len(p.Raw), len(p.Text)+len(p.Value)+len(p.Media.Data))
	}
	return size
}

// appendArguments appends arguments as OpenAI requires them: JSON inside a string.
func appendArguments(dst, value []byte) []byte {
	switch {
	case len(value) == 0:
		return append(dst, `"{}"`...)
	case value[0] == '"':
		return append(dst, value...)
	}
	return rawjson.Quote(dst, value)
}

// appendTool appends the members of a call that name its tool, and hold its arguments or its free text.
func appendTool(dst []byte, p *Block) []byte {
	dst = with(dst, `"name":`, toolName(p))
	if p.Custom {
		return with(dst, `,"input":`, p.Value)
	}
	return appendArguments(append(dst, `,"arguments":`...), p.Value)
}

// failed marks the content of a result as that of a tool that failed, where the format has no member for it.
func failed(content []*Block) []*Block {
	if len(content) == 0 || content[0].Kind != Text {
		return append([]*Block{{Kind: Text, Text: []byte(`"[Error]"`)}}, content...)
	}
	content[0] = &Block{Kind: Text, Text: joined("[Error] ", content[0].Text)}
	return content
}

// appendImageName appends the name of an image, which its block has no member for, as a block of text of a type.
func appendImageName(dst []byte, blockType string, p *Block) []byte {
	if p.Kind != Image || p.Media.Name == nil {
		return dst
	}
	dst = wrap(dst, `{"type":"`, blockType, `","text":`)
	return wrap(dst, "", note("image %s", unquoted(p.Media.Name)), "},")
}

// fileName returns a file's name, which the provider requires with its data.
func fileName(m *Media) []byte {
	if m.Name == nil {
		return []byte(`"file"`)
	}
	return m.Name
}
