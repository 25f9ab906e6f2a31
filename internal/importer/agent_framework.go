package importer

import "strings"

// Its messages have a role, which may be an object, and contents of a type each. They become OpenAI Chat's, with a
// message for each result.
var agentFramework = source{
	name:  AgentFramework,
	title: "Agent Framework's messages",
	detect: func(s sample) bool {
		return s.first.has("contents") && s.first.has("role") || frameworkThread(s.object) != nil
	},
	into: OpenAIChat,
	runs: &layout{bare: func(o object) bool { return o.has("contents") }, list: frameworkMessages},
	open: func(d *draft) reader {
		return func(e entry) ([][]byte, error) { return frameworkMessage(d.file, e) }
	},
}

func frameworkThread(o object) [][]byte {
	return parseArray(parseObject(o["chat_message_store_state"])["messages"])
}

// frameworkMessages returns the messages of a thread or of a run.
func frameworkMessages(f *File, run entry) [][]byte {
	if messages := frameworkThread(run.object); messages != nil {
		return messages
	}
	return f.list(run, "messages")
}

func frameworkMessage(f *File, e entry) ([][]byte, error) {
	c := frameworkContents{message: chatMessage{role: e.text("role")}}
	if c.message.role == "" {
		c.message.role = parseObject(e.object["role"]).text("value")
	}
	if c.message.role == "" {
		return nil, errNoRole
	}
	for o := range objects(e.object["contents"]) {
		if !c.add(o) {
			f.note(e.line, "content of type %q was left out", contentType(o))
		}
	}
	c.message.content = blocksOrText(c.blocks)
	bodies, err := c.message.bodies()
	if c.results != nil {
		return append(bodies, c.results...), nil
	}
	return bodies, err
}

// frameworkContents are the contents of one message.
type frameworkContents struct {
	message chatMessage
	blocks  [][]byte
	results [][]byte
}

// contentType returns the type of a content: Python's and .NET's messages name it differently.
func contentType(o object) string { return o.text("type") + o.text("$type") }

// add reports false for a content for which the conversation has no block.
func (c *frameworkContents) add(o object) bool {
	id := o.first("call_id", "callId")
	switch contentType(o) {
	case "text":
		c.blocks = append(c.blocks, textBlock(inString(o["text"])))
	case "text_reasoning", "reasoning":
		c.message.reasoning = nonEmpty(concat(c.message.reasoning, o["text"]))
	case "function_call", "functionCall":
		c.message.calls = append(c.message.calls, chatCall(id, o["name"], o["arguments"]))
	case "function_result", "functionResult":
		c.results = append(c.results, chatResult(id, o.first("result", "exception")))
	case "data", "uri":
		if !isString(o["uri"]) || !strings.HasPrefix(o.text("media_type")+o.text("mediaType"), "image/") {
			return false
		}
		c.blocks = append(c.blocks, imageBlock(o["uri"]))
	case "usage":
	default:
		return false
	}
	return true
}
