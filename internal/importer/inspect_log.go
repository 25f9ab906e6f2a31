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
		return s.object.fits("eval samples") || s.object.fits(inspectSample) ||
			s.object == nil && s.first.fits(inspectSample)
	},
	into:     OpenAIChat,
	required: "role",
	runs:     &layout{within: "samples", list: listed("messages")},
	open: func(d *draft) reader {
		s := inspected{file: d.file, attachments: parseObject(d.run["attachments"])}
		return s.message
	},
}

// inspectSample is the pattern of a sample.
const inspectSample = "messages[] epoch input"

// inspected is a sample being read.
type inspected struct {
	file        *File
	attachments object
}

func (s *inspected) message(e entry) ([][]byte, error) {
	m := chatMessage{role: e.text("role")}
	if content := e.object["content"]; isString(content) {
		m.content = s.resolve(content)
	}
	for o := range objects(e.object["content"]) {
		switch kind := o.text("type"); kind {
		case "text":
			m.addText(s.resolve(o["text"]))
		case "reasoning":
			m.think(s.resolve(o["reasoning"]))
		case "image":
			m.addImages(s.resolve(o["image"]))
		default:
			s.file.note(e.line, "content of type %q was left out", kind)
		}
	}
	if m.role == "tool" {
		return [][]byte{inspectResult(e, or(m.content, blocksOrText(m.blocks)))}, nil
	}
	m.addCalls(e.object["tool_calls"], "id", "function", "arguments")
	return m.bodies()
}

// inspectResult returns the result with what a tool returned, or with why it could not.
func inspectResult(e entry, content []byte) []byte {
	if content == nil || string(content) == `""` {
		content = or(e.at("error.message"), `""`)
	}
	return resultMessage(e.object["tool_call_id"], content)
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
