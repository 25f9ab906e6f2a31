package wire

import (
	"bytes"
	"cmp"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// text adds the text whose literal is at, inside the block raw.
func (s *scanner) text(raw, at Span) *Block {
	if s.empty(at) {
		s.facts.Flags |= FlagEmptyText
	}
	return s.add(Part{Kind: Text, Raw: raw, Value: at, Tokens: s.later(at)})
}

// reasoning adds reasoning whose text is at.
func (s *scanner) reasoning(raw, at Span) *Block {
	return s.add(Part{Kind: Reasoning, Raw: raw, Value: at, Tokens: s.later(at)})
}

// call adds a call of the tool whose name is the literal at.
func (s *scanner) call(p Part, at Span) *Block {
	p.Kind = Call
	p.Tokens = s.tokens(at) + s.tokens(p.Value)
	b := s.add(p)
	if b != nil {
		b.Name = s.literal(at)
	}
	return b
}

// media adds an image or a file, which read reads if the intermediate representation is wanted.
func (s *scanner) media(kind Kind, raw Span, tokens int, read func() Media) *Block {
	s.show(kind, raw)
	b := s.add(Part{Kind: kind, Raw: raw, Tokens: tokens})
	if b != nil {
		b.Media = read()
	}
	return b
}

func (s *scanner) opaque(raw Span) *Block {
	return s.add(Part{Kind: Opaque, Raw: raw, Tokens: s.tokens(raw)})
}

// content adds a part for a content string, or calls add for each element of a content array. Any other content but
// null becomes one Opaque part, which no provider takes there.
func (s *scanner) content(at Span, add func(element Span)) {
	switch {
	case s.absent(at):
	case s.is(at, '"'):
		if at.End-at.Start > len(`""`) {
			s.text(at, at)
		}
	case s.is(at, '['):
		empty := true
		for element := range s.elements(at) {
			if s.is(element, '{') {
				add(element)
			} else {
				s.bare(element)
			}
			empty = false
		}
		if empty {
			s.facts.Flags |= FlagEmptyArray
		}
	default:
		if b := s.opaque(at); b != nil {
			b.Edited = true
		}
		s.loose = s.loose || !s.inside
	}
}

// bare adds an element of a content that is no object, as programs write that have a list of texts. No provider takes
// it.
func (s *scanner) bare(raw Span) {
	s.loose = true
	b := s.opaque(raw)
	if b == nil {
		return
	}
	b.Edited = true
	if s.is(raw, '"') {
		b.Kind, b.Text = Text, raw.Of(s.body)
		b.Raw = nil
	}
}

// result adds a tool result. at is its content: a text, or an array whose elements add reads as it does in a message.
// The part's Value is the zero Span if there is nothing to replace.
func (s *scanner) result(p Part, at Span, add func(element Span)) *Block {
	p.Kind = Result
	if s.absent(p.Value) {
		p.Value = Span{}
	}
	if s.ir == nil && s.is(at, '"') {
		p.Tokens += s.later(at)
		return s.add(p)
	}
	return s.resultOf(p, func() { s.content(at, add) })
}

// resultOf adds a tool result whose content read reads. Nothing inside a result is refused, and nothing in it is a part
// of the message.
func (s *scanner) resultOf(p Part, read func()) *Block {
	facts, inside := s.facts, s.inside
	filled, err := s.filled, s.err
	s.inside, s.facts = true, Facts{Role: facts.Role}
	content := s.ir.swapContent(nil)
	read()
	inner := s.facts
	s.facts, s.inside = facts, inside
	s.filled, s.err = filled, err
	content = s.ir.swapContent(content)
	s.facts.Flags |= inner.Flags &^ FlagEmptyText
	p.Tokens += inner.Tokens
	b := s.add(p)
	if b != nil {
		b.Content = content
	}
	return b
}

// jsonResult adds a result whose content, whatever JSON value it is, is one text.
func (s *scanner) jsonResult(p Part, at Span) *Block {
	if s.absent(at) || s.is(at, '"') {
		return s.result(p, at, nil)
	}
	p.Kind = Result
	p.Tokens = s.tokens(at)
	s.facts.Flags |= FlagResultNotText
	b := s.add(p)
	if b != nil {
		b.Content = []Block{{Format: b.Format, Kind: Text, Text: rawjson.Quote(nil, at.Of(s.body))}}
	}
	return b
}

// measure returns the size of the image that is in a string as base64. Nobody needs it of an intermediate
// representation.
func (s *scanner) measure(literal Span) tokens.Pixels {
	if s.ir != nil {
		return tokens.Pixels{}
	}
	return tokens.Measure(s.plain(literal))
}

// measureURL returns the size of the image that a URL holds, zero if it is elsewhere.
func (s *scanner) measureURL(url Span) (size tokens.Pixels) {
	if s.ir != nil || !s.is(url, '"') {
		return size
	}
	if _, data, ok := dataURL(s.plain(url)); ok {
		size = tokens.Measure(data)
	}
	return size
}

// fileTokens returns the cost of the file that is in a string, as base64 or as a URL that holds it. mediaType is its
// type, "" if only the URL tells that.
func (s *scanner) fileTokens(at Span, mediaType string, costs tokens.Costs) int {
	if s.ir != nil || !s.is(at, '"') {
		return tokens.Unknown
	}
	encoded := s.plain(at)
	kind, data, ok := dataURL(encoded)
	if !ok && bytes.Contains(encoded[:min(len(encoded), len("https://"))], []byte(":")) {
		return tokens.Unknown // it is elsewhere
	}
	if ok {
		encoded = data
	}
	return costs.File(encoded, cmp.Or(mediaType, string(kind)))
}

// dataURL reads a URL that holds the data itself, in base64. The media type is without parameters, and empty if the URL
// has none.
func dataURL(url []byte) (mediaType, data []byte, ok bool) {
	head, data, ok := bytes.Cut(url, []byte(","))
	head, isData := bytes.CutPrefix(head, []byte("data:"))
	head, isBase64 := bytes.CutSuffix(head, []byte(";base64"))
	mediaType, _, _ = bytes.Cut(head, []byte(";"))
	return mediaType, data, ok && isData && isBase64
}

// readURL reads where an image or a file is, or the image or file itself if the URL holds it.
func (s *scanner) readURL(m *Media, at Span) {
	if !s.readData(m, at) {
		m.URL = s.literal(at)
	}
}

// readData reads a URL that holds the data itself, and reports whether it is one.
func (s *scanner) readData(m *Media, at Span) bool {
	if !s.is(at, '"') {
		return false
	}
	mediaType, data, ok := dataURL(s.plain(at))
	if !ok {
		return false
	}
	if m.Type == nil && len(mediaType) > 0 {
		m.Type = rawjson.Quote(nil, mediaType)
	}
	m.Data = rawjson.Quote(make([]byte, 0, len(data)+len(`""`)), data)
	return true
}

// mediaKind returns what a media type is of.
func (s *scanner) mediaKind(at Span) Kind {
	if !s.is(at, '"') {
		return File
	}
	if kind, _, _ := bytes.Cut(s.plain(at), []byte("/")); bytes.EqualFold(kind, []byte("image")) {
		return Image
	}
	return File
}
