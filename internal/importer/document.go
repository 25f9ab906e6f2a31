package importer

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/varve-dev/varve/internal/session"
)

// document is a conversation in one JSON value: an array of messages, an object with a member "messages" (a request, or
// a log of one with its response), or {"request": {"body": …}, "response": {"body": …}}.
type document struct {
	system   []byte // Anthropic's system prompt
	messages [][]byte
	reply    []byte // the message that the response added, nil for none
}

// parseDocument is false if raw has none of these shapes.
func parseDocument(raw []byte) (document, bool) {
	if list := parseArray(raw); list != nil {
		return document{messages: list}, true
	}
	top := parseObject(raw)
	request, response := top, parseObject(top["response"])
	if exchange := parseObject(top["request"]); exchange != nil {
		request, response = parseObject(exchange["body"]), parseObject(response["body"])
	}
	d := document{messages: parseArray(request["messages"]), reply: reply(response)}
	if request.has("system") {
		d.system = request["system"]
	}
	return d, d.messages != nil
}

// reply is the message that a response holds: Chat Completions' first choice, or an Anthropic message without what is
// about the response rather than the conversation.
func reply(response object) []byte {
	if choices := parseArray(response["choices"]); len(choices) > 0 {
		if o := parseObject(choices[0]); o.has("message") {
			return o["message"]
		}
	}
	if response.text("type") == "message" && response.text("role") == "assistant" && response.has("content") {
		return message("assistant", response["content"])
	}
	return nil
}

// readDocument reads a document as messages of f's source. Each message is an element of its array, byte for byte.
func (f *File) readDocument(id string, data []byte) error {
	if !json.Valid(data) {
		return &UnsupportedError{Found: "not JSON"}
	}
	d, ok := parseDocument(data)
	if !ok {
		return errors.New("the file is no list of messages: a JSON array, or an object with an array \"messages\", is needed")
	}
	c := Conversation{ID: id, Format: session.Format(f.Source)}
	if d.system != nil {
		c.Messages = append(c.Messages, Message{Body: message("system", d.system), Line: 1})
	}
	if d.reply != nil {
		d.messages = append(slices.Clip(d.messages), d.reply)
	}
	for i, raw := range d.messages {
		f.Report.Lines++
		if reason := noMessage(raw); reason != "" {
			f.reject(i+1, raw, "%s", reason)
			continue
		}
		f.Report.Imported++
		c.Messages = append(c.Messages, Message{Body: raw, Line: i + 1})
	}
	f.Conversations = []Conversation{c}
	return nil
}

func noMessage(raw []byte) string {
	o := parseObject(raw)
	switch {
	case o == nil:
		return "not a JSON object"
	case o.text("role") == "":
		return "no role"
	}
	return ""
}
