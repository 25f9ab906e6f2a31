package session

// Format is a provider's message format.
type Format string

// The formats that sessions can have.
const (
	OpenAIChat Format = "openai-chat" // OpenAI Chat Completions
	Anthropic  Format = "anthropic"   // Anthropic Messages
)

// Formats lists every format, in the order in which documentation names them.
func Formats() []Format { return []Format{OpenAIChat, Anthropic} }

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
