package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// listing is a file that an agent reads, as it stands in a JSON string; with some hundred of them a conversation has
// about a megabyte.
var listing = strings.Repeat(`func main() {\n\tfmt.Println(\"héllo\")\n}\n`, 60)

func geminiConversation() (bodies [][]byte) {
	for i := range 330 {
		bodies = append(bodies,
			fmt.Appendf(nil, `{"role":"model","parts":[{"text":"I should read file %d.","thought":true},{"text":"Let me look."},{"functionCall":{"id":"call_%d","name":"read_file","args":{"path":"a/%d.go","offset":1}},"thoughtSignature":"c2lnbmF0dXJl"}]}`, i, i, i),
			fmt.Appendf(nil, `{"role":"user","parts":[{"functionResponse":{"id":"call_%d","name":"read_file","response":{"output":"%s"}}}]}`, i, listing))
	}
	return bodies
}

func uiConversation() (bodies [][]byte) {
	for i := range 330 {
		bodies = append(bodies,
			fmt.Appendf(nil, `{"id":"u%d","role":"user","parts":[{"type":"text","text":"What is in file %d?"}]}`, i, i),
			fmt.Appendf(nil, `{"id":"a%d","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"I should read it."},{"type":"tool-read_file","toolCallId":"call_%d","state":"output-available","input":{"path":"a/%d.go","offset":1},"output":"%s"},{"type":"step-start"},{"type":"text","text":"It prints.","state":"done"}]}`, i, i, i, listing))
	}
	return bodies
}

// The types of clients that decode messages by the book.
type (
	bookContent struct {
		Role  string     `json:"role"`
		Parts []bookPart `json:"parts"`
	}
	bookPart struct {
		Text             string        `json:"text,omitempty"`
		Thought          bool          `json:"thought,omitempty"`
		ThoughtSignature string        `json:"thoughtSignature,omitempty"`
		FunctionCall     *bookFunction `json:"functionCall,omitempty"`
		FunctionResponse *bookFunction `json:"functionResponse,omitempty"`
	}
	bookFunction struct {
		ID       string          `json:"id,omitempty"`
		Name     string          `json:"name"`
		Args     json.RawMessage `json:"args,omitempty"`
		Response *struct {
			Output string `json:"output"`
		} `json:"response,omitempty"`
	}
	bookUIMessage struct {
		ID    string       `json:"id"`
		Role  string       `json:"role"`
		Parts []bookUIPart `json:"parts"`
	}
	bookUIPart struct {
		Type       string          `json:"type"`
		Text       string          `json:"text,omitempty"`
		State      string          `json:"state,omitempty"`
		ToolCallID string          `json:"toolCallId,omitempty"`
		Input      json.RawMessage `json:"input,omitempty"`
		Output     string          `json:"output,omitempty"`
	}
)

func BenchmarkDecodeGemini(b *testing.B) {
	benchmarkDecode[bookContent](b, session.Gemini, geminiConversation())
}

func BenchmarkEncodeGemini(b *testing.B) {
	benchmarkEncode[bookContent](b, session.Gemini, geminiConversation())
}

func BenchmarkDecodeAISDK(b *testing.B) {
	benchmarkDecode[bookUIMessage](b, session.AISDK, uiConversation())
}

func BenchmarkEncodeAISDK(b *testing.B) {
	benchmarkEncode[bookUIMessage](b, session.AISDK, uiConversation())
}
