package provider

import (
	"cmp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/session"
)

// Media is what a server takes of images and files in one request. 0 is any number.
type Media struct {
	Images     int // how many, unless the registry knows a number for the model
	Side       int // pixels of the longer side of an image
	Many       int // above this number of images, their sides have at most ManySide pixels
	ManySide   int
	ImageBytes int    // of one image, in base64
	Pages      bool   // PDFs have no more pages together than there may be images
	Request    int    // bytes of all that is sent, whose messages are given all but a sixteenth of it
	Types      string // of images in the message, separated by spaces; "" for those that a rule of the format names
	Inside     bool   // it takes nothing that is elsewhere
	Names      bool   // a bare name says where a file is
	FileURLs   bool   // file_data of Chat Completions may be a URL
}

// The limits of providers:
//
//   - Anthropic: numbers, sides, pages and bytes https://platform.claude.com/docs/en/build-with-claude/vision,
//     https://platform.claude.com/docs/en/build-with-claude/pdf-support; what it answers: anthropics/claude-code#4778
//     (8000 pixels), #52220 (2000 pixels), earendil-works/pi#424 (5,242,880 bytes)
//   - Bedrock: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html
//   - OpenAI: https://platform.openai.com/docs/guides/images-vision
//   - Gemini: https://ai.google.dev/gemini-api/docs/image-understanding; 20 MB
//     https://firebase.google.com/docs/ai-logic/input-file-requirements
//   - Groq: bytes https://console.groq.com/docs/vision
//   - types: https://platform.openai.com/docs/guides/images-vision, yuji-hatakeyama/opencode-gpt-imagegen#82;
//     https://ai.google.dev/gemini-api/docs/image-understanding, microsoft/vscode#286628, CherryHQ/cherry-studio#3088
//   - nothing elsewhere: BerriAI/litellm#18430
//   - URLs in file_data: https://openrouter.ai/docs/features/multimodal/pdfs
//
// Vertex's bytes, Groq's number, and Mistral's limits are those that were once published: no page of today that we know
// has them.
var (
	mediaOfAnthropic = Media{
		Images: 100, Side: 8000, Many: 20, ManySide: 2000, ImageBytes: 5 << 20, Pages: true, Request: 32_000_000,
	}
	mediaOfBedrock = mediaOfAnthropic.upTo(20_000_000)
	mediaOfVertex  = mediaOfAnthropic.upTo(30_000_000)
	mediaOfOpenAI  = Media{Images: 500, Request: 50_000_000, Types: typesOfOpenAI}
	mediaOfOthers  = Media{Images: 500, Request: 50_000_000} // that speak OpenAI's formats, before many models
	mediaOfGoogle  = Media{Images: 3600, Request: 20_000_000, Types: typesOfGoogle}
	mediaOfGroq    = Media{Images: 5, Request: 4_000_000, Types: typesOfOpenAI}
	mediaOfMistral = Media{Images: 8, ImageBytes: 14_000_000} // 10 MB before they are written in base64
)

const (
	typesOfOpenAI    = "image/png image/jpeg image/jpg image/gif image/webp"
	typesOfGoogle    = "image/png image/jpeg image/webp image/heic image/heif"
	typesOfAnthropic = "image/png image/jpeg image/gif image/webp"
)

// Shows reports whether the server shows images of a type that are in the message.
func (m *Media) Shows(mediaType string) bool {
	return m.Types == "" || slices.Contains(strings.Fields(m.Types), mediaType)
}

// Retypes reports whether the server shows images of a type that another was said to be: of one that does not tell, the
// types that every server shows.
func (m *Media) Retypes(mediaType string) bool {
	return slices.Contains(strings.Fields(cmp.Or(m.Types, typesOfOpenAI)), mediaType)
}

func (m Media) inside() Media {
	m.Inside = true
	return m
}

func (m Media) of(types string) Media {
	m.Types = types
	return m
}

func (m Media) named() Media {
	m.Names = true
	return m
}

func (m Media) upTo(bytes int) Media {
	m.Request = bytes
	return m
}

// MaxImages returns how many images a request for a model in a format may have, 0 for any number.
func MaxImages(f session.Format, model string) int {
	return In(f, DialectOf(f, model)).Media.MaxImages(model)
}

// MaxImages returns how many images a request for a model may have, 0 for any number.
func (m *Media) MaxImages(model string) int {
	if known := models.Of(model).MaxImages; known > 0 && m.Images > 0 {
		return known
	}
	return m.Images
}

// MaxBytes returns how many bytes the messages of a request may have, 0 for any number.
func (m *Media) MaxBytes() int { return m.Request - m.Request/16 }
