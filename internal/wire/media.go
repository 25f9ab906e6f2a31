package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// binary reports whether a block type of either format holds an image or a file.
func (s *scanner) binary(at Span) bool {
	for _, name := range [...]string{"image", "document", "image_url", "input_audio", "file"} {
		if s.says(at, name) {
			return true
		}
	}
	return false
}

// mediaTokens is the cost of a block that is binary.
func (s *scanner) mediaTokens(v *[blockMembers]Span) int {
	switch kind := v[blockType]; {
	case s.says(kind, "image"):
		return s.imageTokens(v[blockSource])
	case s.says(kind, "document"):
		return s.documentTokens(v[blockSource])
	case s.says(kind, "image_url"):
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
	if !s.says(v[0], "base64") || !s.is(v[1], '"') {
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
		if head, data, ok := bytes.Cut(s.plain(v[0]), []byte(",")); ok && bytes.HasPrefix(head, []byte("data:")) && bytes.HasSuffix(head, []byte(";base64")) {
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
	case s.says(v[0], "text"):
		return s.tokens(v[1])
	case s.says(v[0], "content"):
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
