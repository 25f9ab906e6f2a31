package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// The members of the blocks of a message or an output.
const (
	responsesType = iota
	responsesText
	responsesRefusal
	responsesImageURL
	responsesFileID
	responsesDetail
	responsesFileData
	responsesFileURL
	responsesFilename
	responsesAudio
	responsesMembers
)

var responsesNames = []string{
	"type", "text", "refusal", "image_url", "file_id", "detail", "file_data", "file_url", "filename", "input_audio",
}

// responsesValues reads a block. One that is no object has no members.
func (s *scanner) responsesValues(block Span) (v [responsesMembers]Span) {
	if s.is(block, '{') {
		s.pick(block.Start, responsesNames, v[:])
	}
	return v
}

// responsesKind is what a block is.
func (s *scanner) responsesKind(v *[responsesMembers]Span) Kind {
	switch s.name(v[responsesType]) {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		if s.is(v[responsesText], '"') {
			return Text
		}
	case "refusal":
		if s.is(v[responsesRefusal], '"') {
			return Text
		}
	case "input_image", "computer_screenshot":
		return Image
	case "input_file", "input_audio":
		return File
	}
	return Opaque
}

// words is the text of a block, a refusal's too.
func (s *scanner) words(v *[responsesMembers]Span) Span {
	if s.isText(v[responsesType], "refusal") {
		return v[responsesRefusal]
	}
	return v[responsesText]
}

func (s *scanner) responsesBlock(raw Span) {
	v := s.responsesValues(raw)
	switch kind := s.responsesKind(&v); kind {
	case Text:
		s.text(raw, s.words(&v))
	case Image:
		s.add(Part{Kind: Image, Raw: raw, Tokens: s.pictureTokens(&v)})
	case File:
		s.add(Part{Kind: File, Raw: raw, Tokens: tokens.Unknown})
	default:
		s.opaque(raw)
	}
}

// responsesMedia is the cost of a block that is an image or a file.
func (s *scanner) responsesMedia(block Span) int {
	v := s.responsesValues(block)
	if s.responsesKind(&v) == Image {
		return s.pictureTokens(&v)
	}
	return tokens.Unknown
}

// pictureTokens is the cost of an image, whose URL may hold the image itself.
func (s *scanner) pictureTokens(v *[responsesMembers]Span) int {
	var size tokens.Pixels
	if url := v[responsesImageURL]; s.is(url, '"') {
		if _, data, ok := dataURL(s.plain(url)); ok {
			size = tokens.Measure(data)
		}
	}
	return tokens.TiledImage(s.name(v[responsesDetail]), size)
}

// outputTokens is the cost of the output of a function or a custom tool, and notes what of it is no text.
func (s *scanner) outputTokens(output Span) int {
	if !s.is(output, '[') {
		s.facts.Flags |= FlagResultNotText
		return s.tokens(output)
	}
	total, empty := 0, true
	for element := range rawjson.Elements(s.body, output.Start) {
		empty = false
		v := s.responsesValues(element)
		switch s.responsesKind(&v) {
		case Text:
			total += s.tokens(s.words(&v))
			continue
		case Image, File:
			total += s.responsesMedia(element)
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
