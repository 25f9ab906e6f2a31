package session

import (
	"fmt"
	"slices"
)

// Format is a provider's message format.
type Format string

// The formats that messages can have.
const (
	OpenAIChat      Format = "openai-chat"      // OpenAI Chat Completions: messages
	Anthropic       Format = "anthropic"        // Anthropic Messages: messages
	OpenAIResponses Format = "openai-responses" // OpenAI Responses: input items
	Gemini          Format = "gemini"           // Gemini generateContent: contents
	AISDK           Format = "ai-sdk"           // Vercel AI SDK: UIMessages
)

// Formats lists every format, in the order of their numbers in the database.
func Formats() []Format { return []Format{OpenAIChat, Anthropic, OpenAIResponses, Gemini, AISDK} }

// Valid reports whether f is a known format.
func (f Format) Valid() bool { return f.Number() > 0 }

// Number returns the format's number in the database, from 1; 0 if the format is unknown.
func (f Format) Number() int16 { return int16(slices.Index(Formats(), f) + 1) }

// Scan reads a format by its number in the database; 0 is "".
func (f *Format) Scan(number any) error {
	n, ok := number.(int64)
	if !ok || n < 0 || n > int64(len(Formats())) {
		return fmt.Errorf("format %v is not a number from 0 to %d", number, len(Formats()))
	}
	*f = ""
	if n > 0 {
		*f = Formats()[n-1]
	}
	return nil
}
