package importer

import "github.com/varve-dev/varve/internal/session"

// AgentFramework is Microsoft's Agent Framework.
const AgentFramework Source = "agent-framework"

// Its messages have a role, which may be an object, and contents of a type each. They become Chat Completions', with a
// message for each result.
var agentFramework = source{
	name:  AgentFramework,
	title: "Agent Framework's messages",
	detect: func(s sample) bool {
		return s.first.has("contents") && s.first.has("role") || frameworkThread(s.object) != nil
	},
	read: readAgentFramework,
}

// frameworkThread returns the messages of a serialised thread.
func frameworkThread(o object) [][]byte {
	return parseArray(parseObject(o["chat_message_store_state"])["messages"])
}

func readAgentFramework(f *File, id string, data []byte) error {
	read := func(list [][]byte) {
		f.add(id, session.OpenAIChat, f.convert(f.elements(list), f.frameworkMessage))
	}
	if list := array(data); len(list) > 0 && parseObject(list[0]).has("contents") {
		read(list)
		return nil
	}
	for run := range f.runs(data) {
		messages := frameworkThread(run.object)
		if messages == nil {
			messages = f.list(run, "messages")
		}
		read(messages)
	}
	return nil
}

func (f *File) frameworkMessage(e entry) ([][]byte, error) {
	role := e.text("role")
	if role == "" {
		role = parseObject(e.object["role"]).text("value")
	}
	if role == "" {
		return nil, errNoRole
	}
	c := frameworkContents{message: chatMessage{role: role}}
	for _, raw := range parseArray(e.object["contents"]) {
		if o := parseObject(raw); !c.add(o) {
			f.note(e.line, "content of type %q was left out", contentType(o))
		}
	}
	c.message.content = blocksOrText(c.blocks)
	bodies := c.results
	if body, ok := c.message.body(); ok {
		bodies = append([][]byte{body}, bodies...)
	}
	if bodies == nil {
		return nil, skipped(role + " without content")
	}
	return bodies, nil
}

// frameworkContents are the contents of one message.
type frameworkContents struct {
	message chatMessage
	blocks  [][]byte
	results [][]byte
}

// contentType returns the type of a content: Python's and .NET's messages name it differently.
func contentType(o object) string { return o.text("type") + o.text("$type") }

// add reports false for a content that the conversation has no words for.
func (c *frameworkContents) add(o object) bool {
	id := o["call_id"]
	if !has(id) {
		id = o["callId"]
	}
	switch contentType(o) {
	case "text":
		c.blocks = append(c.blocks, textBlock(inString(o["text"])))
	case "text_reasoning", "reasoning":
		c.message.reasoning = said(concat(c.message.reasoning, o["text"]))
	case "function_call", "functionCall":
		c.message.calls = append(c.message.calls, chatCall(id, o["name"], o["arguments"]))
	case "function_result", "functionResult":
		result := o["result"]
		if !has(result) {
			result = o["exception"]
		}
		c.results = append(c.results, chatResult(id, result))
	case "data", "uri":
		return c.media(o)
	case "usage":
	default:
		return false
	}
	return true
}

func (c *frameworkContents) media(o object) bool {
	kind := o.text("media_type") + o.text("mediaType")
	if !isString(o["uri"]) || len(kind) < 6 || kind[:6] != "image/" {
		return false
	}
	c.blocks = append(c.blocks, imageBlock(o["uri"]))
	return true
}
