package importer

import (
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// Each sample of a log is a conversation. Its messages become OpenAI Chat's: of a call the function is a name and
// the arguments are an object, reasoning is a content among others, and what is long may be among the sample's
// attachments.
var inspectLog = source{
	name:   InspectLog,
	title:  "Inspect's logs",
	detect: marked("eval samples", "messages[] epoch input", "0.messages[] 0.epoch 0.input"),
	into:   OpenAIChat,
	runs:   layout{within: "samples", lists: []string{"messages"}},
	open:   func(d *draft) record { return inspected{parseObject(d.run["attachments"])}.message },
}

// inspected is a sample being read.
type inspected struct{ attachments object }

func (s inspected) message(d *draft, e entry) error {
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
			d.leavePart(kind)
		}
	}
	if m.role == "tool" {
		m.answers = inString(e.object["tool_call_id"])
		if m.blocks == nil && nonEmpty(m.content) == nil {
			m.content = e.at("error.message") // why the tool could not return anything
		}
	}
	m.addCalls(e.object["tool_calls"], "id", "function", "arguments")
	return d.addChat(&m)
}

const attachment = "attachment://"

// resolve returns the attachment that a text names, or the text itself.
func (s inspected) resolve(text []byte) []byte {
	if !strings.HasPrefix(string(text), `"`+attachment) {
		return text
	}
	name, _ := rawjson.Unquote(nil, text)
	if found := s.attachments[strings.TrimPrefix(string(name), attachment)]; isString(found) {
		return found
	}
	return text
}
