package importer

import (
	"github.com/varve-dev/varve/internal/session"
)

// Grok is Grok's chat histories: JSON lines.
const Grok Source = "grok"

// The lines become Responses items, which have a place for encrypted reasoning and for the calls that the provider
// itself makes.
var grok = source{
	name:  Grok,
	title: "Grok's chat histories",
	detect: func(s sample) bool {
		switch s.object.text("type") {
		case "assistant":
			return s.object.has("content") && (s.object.has("model_id") || s.object.has("model_fingerprint"))
		case "tool_result":
			return s.object.has("tool_call_id") && s.object.has("content")
		case "backend_tool_call":
			return s.object.has("kind")
		}
		return false
	},
	likely: func(s sample) bool { return s.line && s.object.text("type") == "user" && s.object.has("content") },
	read:   convertLines(session.OpenAIResponses, grokItems),
}

func grokItems(e entry) ([][]byte, error) {
	content := e.object["content"]
	switch kind := e.text("type"); kind {
	case "":
		return nil, errNoType
	case "system", "user":
		if !has(content) {
			return nil, skipped(kind + " without content")
		}
		return [][]byte{item(kind, grokContent(content))}, nil
	case "reasoning":
		return [][]byte{e.raw}, nil
	case "assistant":
		return grokAnswer(e, content)
	case "tool_result":
		return [][]byte{
			fill(
				`{"type":"function_call_output","call_id":%,"output":%}`, inString(e.object["tool_call_id"]),
				inString(content),
			),
		}, nil
	case "backend_tool_call":
		return grokBackend(parseObject(e.object["kind"]))
	default:
		return nil, skipped(kind)
	}
}

func grokAnswer(e entry, content []byte) ([][]byte, error) {
	var items [][]byte
	if text := said(content); text != nil {
		items = append(
			items,
			fill(
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%,"annotations":[]}]}`,
				text,
			),
		)
	}
	for _, raw := range parseArray(e.object["tool_calls"]) {
		o := parseObject(raw)
		items = append(
			items,
			fill(
				`{"type":"function_call","call_id":%,"name":%,"arguments":%}`, inString(o["id"]), inString(o["name"]),
				inString(o["arguments"]),
			),
		)
	}
	if items == nil {
		return nil, skipped("assistant without content")
	}
	return items, nil
}

// grokContent returns a user's content in the API's blocks.
func grokContent(raw []byte) []byte {
	blocks := parseArray(raw)
	if blocks == nil {
		return inString(raw)
	}
	for i, b := range blocks {
		o := parseObject(b)
		switch {
		case o.text("type") == "text":
			blocks[i] = fill(`{"type":"input_text","text":%}`, inString(o["text"]))
		case o.text("type") == "image" && isString(o["url"]):
			blocks[i] = fill(`{"type":"input_image","image_url":%,"detail":"auto"}`, o["url"])
		}
	}
	return list(blocks)
}

// grokBackend returns a search that the provider made by itself.
func grokBackend(call object) ([][]byte, error) {
	if call.text("tool_type") != "web_search" || !call.has("id") {
		return nil, skipped("backend_tool_call of " + call.text("tool_type"))
	}
	status := call["status"]
	if !isString(status) {
		status = []byte(`"completed"`)
	}
	return [][]byte{
		fill(
			`{"type":"web_search_call","id":%,"status":%%}`, inString(call["id"]), status,
			member("action", call["action"]),
		),
	}, nil
}
