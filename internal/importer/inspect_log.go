package importer

import (
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Each sample of a log is a conversation. Its messages become OpenAI Chat's: of a call the function is a name and
// the arguments are an object, reasoning is a content among others, and what is long may be among the sample's
// attachments.
var inspectLog = source{
	name:  InspectLog,
	title: "Inspect's logs",
	detect: func(s sample) bool {
		return s.object.has("eval") && s.object.has("samples") || inspectSample(s.object) ||
			s.object == nil && inspectSample(s.first)
	},
	into:     OpenAIChat,
	required: "role",
	runs:     &layout{within: "samples", list: listed("messages")},
	open: func(d *draft) reader {
		s := inspected{file: d.file, attachments: parseObject(d.run["attachments"])}
		return s.message
	},
}

func inspectSample(o object) bool {
	return parseArray(o["messages"]) != nil && o.has("epoch") && o.has("input")
}

// inspected is a sample being read.
type inspected struct {
	file        *File
	attachments object
}

func (s *inspected) message(e entry) ([][]byte, error) {
	m := chatMessage{role: e.text("role")}
	m.content, m.reasoning = s.content(e)
	if m.role == "tool" {
		return [][]byte{resultMessage(e.object["tool_call_id"], inspectResult(e, m.content))}, nil
	}
	m.addCalls(e.object["tool_calls"], "id", "function", "arguments")
	return m.bodies()
}

// inspectResult returns what a tool returned, or why it could not.
func inspectResult(e entry, content []byte) []byte {
	if content != nil && string(content) != `""` {
		return content
	}
	return or(e.at("error.message"), `""`)
}

// content returns a message's content without its reasoning, and the reasoning.
func (s *inspected) content(e entry) (content, reasoning []byte) {
	raw := e.object["content"]
	if isString(raw) {
		return s.resolve(raw), nil
	}
	var blocks, thoughts [][]byte
	for _, raw := range parseArray(raw) {
		switch o := parseObject(raw); o.text("type") {
		case "text":
			blocks = append(blocks, textBlock(inString(s.resolve(o["text"]))))
		case "reasoning":
			thoughts = append(thoughts, s.resolve(o["reasoning"]))
		case "image":
			blocks = append(blocks, imageBlock(inString(s.resolve(o["image"]))))
		default:
			s.file.note(e.line, "content of type %q was left out", o.text("type"))
		}
	}
	return blocksOrText(blocks), nonEmpty(concat(thoughts...))
}

const attachment = "attachment://"

// resolve returns the attachment that a text names, or the text itself.
func (s *inspected) resolve(text []byte) []byte {
	if !strings.HasPrefix(string(text), `"`+attachment) {
		return text
	}
	name, _ := rawjson.Unquote(nil, text)
	if found := s.attachments[strings.TrimPrefix(string(name), attachment)]; isString(found) {
		return found
	}
	return text
}
