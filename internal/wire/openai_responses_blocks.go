package wire

import (
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

type responsesValues = [responsesMembers]Span

// responsesValues reads the members of a block. A value that is no object has none.
func (s *scanner) responsesValues(block Span) (v responsesValues) {
	if s.is(block, '{') {
		s.pick(block.Start, responsesNames, v[:])
	}
	return v
}

// responsesKind returns the kind of a block.
func (s *scanner) responsesKind(v *responsesValues) Kind {
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

// textOf returns the text of a block, or that of a refusal.
func (s *scanner) textOf(v *responsesValues) Span {
	if s.equals(v[responsesType], "refusal") {
		return v[responsesRefusal]
	}
	return v[responsesText]
}

func (s *scanner) responsesBlock(raw Span) {
	v := s.responsesValues(raw)
	switch s.responsesKind(&v) {
	case Text:
		if s.equals(v[responsesType], "refusal") {
			s.refusal(raw, v[responsesRefusal])
		} else {
			s.text(raw, v[responsesText])
		}
	case Image:
		if b := s.add(Part{Kind: Image, Raw: raw, Tokens: s.pictureTokens(&v)}); b != nil {
			b.Media = Media{ID: s.literal(v[responsesFileID]), Detail: s.literal(v[responsesDetail])}
			s.openAIURL(&b.Media, v[responsesImageURL])
		}
	case File:
		if b := s.add(Part{Kind: File, Raw: raw, Tokens: tokens.Unknown}); b != nil {
			b.Media = s.responsesFile(&v)
		}
	default:
		s.opaque(raw)
	}
}

func (s *scanner) responsesFile(v *responsesValues) Media {
	if s.equals(v[responsesType], "input_audio") {
		return s.audio(v[responsesAudio])
	}
	m := Media{
		ID: s.literal(v[responsesFileID]), Name: s.literal(v[responsesFilename]), URL: s.literal(v[responsesFileURL]),
	}
	if !s.openAIData(&m, v[responsesFileData]) {
		m.Data = s.literal(v[responsesFileData])
	}
	return m
}

// pictureTokens returns the cost of an image.
func (s *scanner) pictureTokens(v *responsesValues) int {
	return tokens.TiledImage(s.name(v[responsesDetail]), s.measureURL(v[responsesImageURL]))
}
