package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// binary reports whether a block type of either format holds an image or a file.
func (s *scanner) binary(at Span) bool {
	for _, name := range [...]string{"image", "document", "image_url", "input_audio", "file"} {
		if s.isText(at, name) {
			return true
		}
	}
	return false
}

// mediaTokens is the cost of a block that is binary.
func (s *scanner) mediaTokens(v *[blockMembers]Span) int {
	switch kind := v[blockType]; {
	case s.isText(kind, "image"):
		return s.imageTokens(v[blockSource])
	case s.isText(kind, "document"):
		return s.documentTokens(v[blockSource])
	case s.isText(kind, "image_url"):
		return s.imageURLTokens(v[blockImageURL])
	}
	return tokens.Unknown
}

var (
	sourceNames   = []string{"type", "data", "content"}
	imageURLNames = []string{"url", "detail"}
)

// imageTokens is the cost of an Anthropic image: by its size if it is in the message, not elsewhere.
func (s *scanner) imageTokens(source Span) int {
	if !s.is(source, '{') {
		return tokens.Unknown
	}
	var v [3]Span
	s.pick(source.Start, sourceNames, v[:])
	if !s.isText(v[0], "base64") || !s.is(v[1], '"') {
		return tokens.Unknown
	}
	return tokens.AreaImage(tokens.Measure(s.plain(v[1])))
}

// imageURLTokens is the cost of an OpenAI image, whose URL may hold the image itself.
func (s *scanner) imageURLTokens(at Span) int {
	if !s.is(at, '{') {
		return tokens.Unknown
	}
	var v [2]Span
	s.pick(at.Start, imageURLNames, v[:])
	var size tokens.Pixels
	if s.is(v[0], '"') {
		if _, data, ok := dataURL(s.plain(v[0])); ok {
			size = tokens.Measure(data)
		}
	}
	return tokens.TiledImage(s.name(v[1]), size)
}

// documentTokens counts an Anthropic document that is text by its text, any other one as a file.
func (s *scanner) documentTokens(source Span) int {
	if !s.is(source, '{') {
		return tokens.Unknown
	}
	var v [3]Span
	s.pick(source.Start, sourceNames, v[:])
	switch {
	case s.isText(v[0], "text"):
		return s.tokens(v[1])
	case s.isText(v[0], "content"):
		return s.tokens(v[2])
	}
	return tokens.Unknown
}

// plain is the text of a string literal; only one with escapes is copied.
func (s *scanner) plain(at Span) []byte {
	inner := s.body[at.Start+1 : at.End-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	text, _ := rawjson.Unquote(nil, at.Of(s.body))
	return text
}

// dataURL reads a URL that holds the data itself, in base64. The media type is without parameters, and empty if there
// is none.
func dataURL(url []byte) (mediaType, data []byte, ok bool) {
	head, data, ok := bytes.Cut(url, []byte(","))
	head, isData := bytes.CutPrefix(head, []byte("data:"))
	head, isBase64 := bytes.CutSuffix(head, []byte(";base64"))
	mediaType, _, _ = bytes.Cut(head, []byte(";"))
	return mediaType, data, ok && isData && isBase64
}

// mediaKind is what a media type is of.
func (s *scanner) mediaKind(at Span) Kind {
	if s.is(at, '"') && bytes.HasPrefix(s.plain(at), []byte("image/")) {
		return Image
	}
	return File
}

// standardBase64 is base64 in the alphabet that every provider reads. Google's clients write the one for URLs, too, and
// may leave the padding out.
func standardBase64(data []byte) []byte {
	if bytes.IndexByte(data, '-') < 0 && bytes.IndexByte(data, '_') < 0 && len(data)%4 == 0 {
		return data
	}
	out := make([]byte, len(data), len(data)+3)
	for i, c := range data {
		switch c {
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		out[i] = c
	}
	for len(out)%4 > 0 && len(out)%4 != 1 {
		out = append(out, '=')
	}
	return out
}
