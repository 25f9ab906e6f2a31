package tools

import (
	"encoding/base64"
	"encoding/json"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// Messages returns an answer as the messages of a format, ready to be appended and to be sent to the model: the result
// of the call callID of a tool. Chat Completions takes no image in a result, and Gemini in few models: a message of the
// user follows that has them. In the AI SDK's format, where a call and its result are one part of the assistant's
// message, it is that part, and given are the call's arguments.
func (a *Answer) Messages(f session.Format, name, callID string, given []byte) []json.RawMessage {
	if f == session.AISDK {
		return []json.RawMessage{a.part(name, callID, given)}
	}
	result := wire.Block{
		Kind: wire.Result, CallID: callID, Name: rawjson.Quote(nil, []byte(name)), IsError: a.IsError,
		Content: []wire.Block{{Kind: wire.Text, Text: rawjson.Quote(nil, []byte(a.Text))}},
	}
	for _, image := range a.Images {
		result.Content = append(result.Content, wire.Block{Kind: wire.Image, Media: wire.Media{
			Type: rawjson.Quote(nil, []byte(image.MediaType)),
			Data: rawjson.Quote(nil, []byte(base64.StdEncoding.EncodeToString(image.Data))),
		}})
	}
	bodies := wire.Encode(f, []wire.Message{{Role: wire.Tool, Blocks: []wire.Block{result}}})
	messages := make([]json.RawMessage, len(bodies))
	for i, body := range bodies {
		messages[i] = body
	}
	return messages
}

// part returns the part of a message of the AI SDK that is a call and its result.
func (a *Answer) part(name, callID string, given []byte) json.RawMessage {
	input := json.RawMessage(rawjson.Whole(given))
	if !json.Valid(given) {
		input = json.RawMessage("{}")
	}
	part := map[string]any{
		"type": "tool-" + name, "toolCallId": callID, "state": "output-available", "input": input, "output": a.Text,
	}
	switch {
	case a.IsError:
		delete(part, "output")
		part["state"], part["errorText"] = "output-error", a.Text
	case len(a.Images) > 0:
		part["output"] = a.blocks()
	}
	encoded, err := json.Marshal(part)
	if err != nil { // no value in it can fail
		panic(err)
	}
	return encoded
}

// blocks returns text and images as the output of a tool of the AI SDK that toModelOutput passes on.
func (a *Answer) blocks() any {
	value := []any{object{"type": "text", "text": a.Text}}
	for _, image := range a.Images {
		value = append(value, object{"type": "media", "data": base64.StdEncoding.EncodeToString(image.Data),
			"mediaType": image.MediaType})
	}
	return object{"type": "content", "value": value}
}
