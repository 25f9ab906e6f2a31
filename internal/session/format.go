package session

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
func (f Format) Valid() bool {
	for _, known := range Formats() {
		if f == known {
			return true
		}
	}
	return false
}

// Number is the format's number in the database: 1 and up, 0 for none.
func (f Format) Number() int16 {
	for i, known := range Formats() {
		if f == known {
			return int16(i + 1)
		}
	}
	return 0
}
