package importer

import (
	"encoding/json"
	"fmt"

	"github.com/varve-dev/varve/internal/session"
)

// The five formats: a list of messages, a request, a request with its response, or a response, in one JSON value.
const (
	OpenAIChat      = Source(session.OpenAIChat)
	Anthropic       = Source(session.Anthropic)
	OpenAIResponses = Source(session.OpenAIResponses)
	Gemini          = Source(session.Gemini)
	AISDK           = Source(session.AISDK)
)

var (
	openAIChat      = document(OpenAIChat, "OpenAI Chat messages")
	anthropic       = document(Anthropic, "Anthropic messages")
	openAIResponses = document(OpenAIResponses, "OpenAI Responses items")
	gemini          = document(Gemini, "Gemini contents")
	aiSDK           = document(AISDK, "AI SDK messages")
)

func document(name Source, title string) source {
	return source{
		name:   name,
		title:  title,
		detect: func(s sample) bool { return !s.line && s.format == session.Format(name) },
		read:   readDocument,
	}
}

// readDocument reads one JSON value as messages of f's source. Each message is an element of its array, byte for byte.
func readDocument(f *File, id string, data []byte) error {
	if !json.Valid(data) {
		return &UnsupportedError{Found: "not JSON"}
	}
	e, ok := parseTranscript(session.Format(f.Source), data)
	if !ok {
		return fmt.Errorf(
			"the file is no list of messages: a JSON array, or an object with an array %q, is needed",
			shapes[session.Format(f.Source)].messages,
		)
	}
	c := Conversation{ID: id, Format: e.format}
	if e.system != nil {
		c.Messages = append(c.Messages, Message{Body: e.system, Line: 1})
	}
	for i, raw := range e.all() {
		f.Report.Lines++
		if reason := noMessage(e.format, raw); reason != "" {
			f.reject(i+1, raw, "%s", reason)
			continue
		}
		f.Report.Imported++
		c.Messages = append(c.Messages, Message{Body: raw, Line: i + 1})
	}
	f.Conversations = []Conversation{c}
	return nil
}

func noMessage(format session.Format, raw []byte) string {
	o := parseObject(raw)
	switch {
	case o == nil:
		return "not a JSON object"
	case format == session.OpenAIResponses && o.has("type"), format == session.Gemini && o.has("parts"):
		return ""
	case o.text("role") == "":
		return "no role"
	}
	return ""
}
