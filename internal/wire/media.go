package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/tokens"
)

// The members of image_url.
const (
	imageURL = iota
	imageDetail
	imageURLMembers
)

var imageURLNames = []string{"url", "detail"}

func (s *scanner) imageURL(at Span) (v [imageURLMembers]Span) {
	if s.is(at, '{') {
		s.pick(at.Start, imageURLNames, v[:])
	}
	return v
}

// imageURLTokens returns the cost of an OpenAI image.
func (s *scanner) imageURLTokens(at Span) int {
	if !s.is(at, '{') {
		return tokens.Unknown
	}
	v := s.imageURL(at)
	return tokens.TiledImage(s.name(v[imageDetail]), s.measureURL(v[imageURL]))
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

// dataURL reads a URL that holds the data itself, in base64. The media type is without parameters, and empty if there
// is none.
func dataURL(url []byte) (mediaType, data []byte, ok bool) {
	head, data, ok := bytes.Cut(url, []byte(","))
	head, isData := bytes.CutPrefix(head, []byte("data:"))
	head, isBase64 := bytes.CutSuffix(head, []byte(";base64"))
	mediaType, _, _ = bytes.Cut(head, []byte(";"))
	return mediaType, data, ok && isData && isBase64
}

// mediaKind returns what a media type is of.
func (s *scanner) mediaKind(at Span) Kind {
	if s.is(at, '"') && bytes.HasPrefix(s.plain(at), []byte("image/")) {
		return Image
	}
	return File
}

// standardBase64 returns base64 in the alphabet that every provider reads. Google's clients write the one for URLs,
// too, and may leave the padding out.
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
