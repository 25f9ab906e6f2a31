package importer

import (
	"fmt"
	"strings"
)

// A history (all_messages_json) has requests, which hold what the user and tools said, and responses. Each part names
// its kind (https://ai.pydantic.dev/message-history/). They become OpenAI Chat's messages: a request one for each part,
// a response one.
var pydanticAI = source{
	name:  PydanticAI,
	title: "Pydantic AI's message histories",
	detect: marked(
		"0.kind=request|response 0.parts[]", "kind=request|response parts[]",
		"messages.0.kind=request|response messages.0.parts[]",
	),
	into: OpenAIChat,
	runs: layout{lists: []string{"messages"}, bare: true},
	open: func(*draft) record { return (&pydanticLog{}).record },
}

// pydanticLog is a history being read.
type pydanticLog struct {
	instructions string // the last of a request, which each request repeats
}

func (l *pydanticLog) record(d *draft, e entry) error {
	switch kind := e.text("kind"); kind {
	case "request":
		return l.request(d, e)
	case "response":
		return pydanticResponse(d, e)
	case "":
		return errNoType
	default:
		return skipped(kind)
	}
}

// request adds a message for each part, after the instructions if they are new.
func (l *pydanticLog) request(d *draft, e entry) error {
	if text := nonEmpty(e.object["instructions"]); text != nil && string(text) != l.instructions {
		l.instructions = string(text)
		d.add(message("system", text))
	}
	for part := range objects(e.object["parts"]) {
		switch kind := part.text("part_kind"); kind {
		case "system-prompt":
			d.add(message("system", inString(part["content"])))
		case "user-prompt":
			m := &chatMessage{role: "user"}
			pydanticContent(d, m, part["content"])
			if err := d.addChat(m); err != nil {
				return err
			}
		case "tool-return":
			d.add(chatResult(part["tool_call_id"], part["content"]))
		case "retry-prompt":
			d.add(pydanticRetry(part))
		default:
			return fmt.Errorf("a request's part of kind %q", kind)
		}
	}
	return nil
}

// pydanticRetry returns what the framework told the model to do again: as the result of a call, or in the user's name.
func pydanticRetry(part object) []byte {
	if part.text("tool_name") == "" {
		return message("user", inString(part["content"]))
	}
	return chatResult(part["tool_call_id"], part["content"])
}

// pydanticContent adds a prompt: a text, or a list of texts and media.
func pydanticContent(d *draft, m *chatMessage, content []byte) {
	for _, raw := range elementsOf(content) {
		o := parseObject(raw)
		kind := o.text("kind")
		switch {
		case o == nil:
			m.addTexts(raw)
		case kind == "text":
			m.addTexts(o["content"])
		case kind == "image-url":
			m.addImages(o["url"])
		case kind == "cache-point": // a mark for the provider's cache
		case kind == "binary" && isString(o["data"]) && !strings.HasPrefix(o.text("media_type"), "image/"):
			const file = `{"type":"file","file":{"filename":%,"file_data":%}}`
			data := concat(quote("data:"), o["media_type"], quote(";base64,"), o["data"])
			m.blocks = append(m.blocks, fill(file, or(nonEmpty(o["identifier"]), `"file"`), data))
		case kind == "binary" && isString(o["data"]):
			m.addImages(concat(quote("data:"), o["media_type"], quote(";base64,"), o["data"]))
		default:
			m.addText(quote("[" + kind + " " + o.text("url") + "]"))
			d.note("a %s of the prompt is not imported: a text stands in its place", kind)
		}
	}
}

// pydanticResponse adds what the model wrote.
func pydanticResponse(d *draft, e entry) error {
	m := &chatMessage{role: "assistant"}
	for part := range objects(e.object["parts"]) {
		switch kind := part.text("part_kind"); kind {
		case "text":
			m.addTexts(part["content"])
		case "thinking":
			m.think(part["content"])
		case "tool-call":
			m.addCall(part["tool_call_id"], part["tool_name"], part["args"])
		default:
			d.leavePart(kind)
		}
	}
	return d.addChat(m)
}
