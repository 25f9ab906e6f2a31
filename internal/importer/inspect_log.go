package importer

import (
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// InspectLog is Inspect's evaluation logs.
const InspectLog Source = "inspect"

// Each sample of a log is a conversation. Its messages become Chat Completions': of a call the function is a name and
// the arguments are an object, reasoning is a content among others, and what is long may stand among the sample's
// attachments.
var inspectLog = source{
	name:  InspectLog,
	title: "Inspect's logs",
	detect: func(s sample) bool {
		return s.object.has("eval") && s.object.has("samples") || inspectSample(s.object) ||
			s.object == nil && inspectSample(s.first)
	},
	read: readInspect,
}

func inspectSample(o object) bool {
	return parseArray(o["messages"]) != nil && o.has("epoch") && o.has("input")
}

func readInspect(f *File, id string, data []byte) error {
	for run := range f.runs(data) {
		for _, sample := range within(run, "samples") {
			s := inspected{file: f, attachments: parseObject(sample.object["attachments"])}
			f.add(id, session.OpenAIChat, f.convert(f.elements(f.list(sample, "messages")), s.message))
		}
	}
	return nil
}

// inspected is a sample being read.
type inspected struct {
	file        *File
	attachments object
}

func (s *inspected) message(e entry) ([][]byte, error) {
	role := e.text("role")
	switch role {
	case "":
		return nil, errNoRole
	case "tool":
		return s.result(e)
	}
	m := chatMessage{role: role}
	m.content, m.reasoning = s.content(e)
	m.addCalls(e.object["tool_calls"], "id", "function", "arguments")
	return m.bodies()
}

// result returns what a tool returned, or why it could not.
func (s *inspected) result(e entry) ([][]byte, error) {
	content, _ := s.content(e)
	if failure := parseObject(e.object["error"]); (content == nil || string(content) == `""`) &&
		failure.has("message") {
		content = failure["message"]
	}
	if content == nil {
		content = []byte(`""`)
	}
	return [][]byte{
		fill(`{"role":"tool","tool_call_id":%,"content":%}`, inString(e.object["tool_call_id"]), content),
	}, nil
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
	return blocksOrText(blocks), said(concat(thoughts...))
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
