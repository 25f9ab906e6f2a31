package fake

import (
	"slices"
	"strings"
)

const messagesKnown = `container inference_geo temperature top_k top_p cache_control metadata output_config service_tier
	stop_sequences stream system thinking tool_choice tools`

// mostOutput is more than any of Anthropic's models writes.
const mostOutput = 200_000

// readMessages reads a request to Anthropic's Messages API.
func readMessages(c *check, body []byte) (r Request) {
	o := c.decoded(body)
	c.members("", o, "model max_tokens messages", messagesKnown)
	if c.wrong != nil {
		return r
	}
	c.sampling(o, 1)
	r.Model = c.text("model", o["model"])
	if r.MaxTokens = c.number("max_tokens", o["max_tokens"]); r.MaxTokens == 0 {
		c.kind("max_tokens", "integer")
	} else if r.MaxTokens > mostOutput {
		c.refuse("max_tokens", "", "max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s",
			r.MaxTokens, mostOutput, r.Model)
	}
	if o["stream"] == true {
		c.refuse("stream", "", "This provider does not stream.")
	}
	if system, ok := o["system"]; ok {
		r.System = texts(blocks(c, "system", system, "text"))
	}
	list := c.list("messages", o["messages"])
	for i, value := range list {
		if m := c.object(item("messages", i), value); c.wrong == nil {
			r.Messages = append(r.Messages, roleMessage(c, item("messages", i), m))
		}
	}
	if c.wrong == nil {
		turns(c, r.Messages, o["tools"] != nil)
	}
	return r
}

func roleMessage(c *check, at string, o object) Message {
	c.members(at, o, "role content", "")
	m := Message{Role: c.text(join(at, "role"), o["role"])}
	c.one(join(at, "role"), m.Role, "user", "assistant")
	allowed := []string{"text", "image", "document", "search_result", "tool_result"}
	if m.Role == "assistant" {
		allowed = []string{"text", "thinking", "redacted_thinking", "tool_use"}
	}
	if text, ok := o["content"].(string); ok && strings.TrimSpace(text) == "" {
		c.refuse(at, "", "%s: %s messages must have non-empty content", at, m.Role)
	}
	m.Parts = blocks(c, join(at, "content"), o["content"], allowed...)
	return m
}

// blocks returns the parts of a text or of a list of blocks.
func blocks(c *check, at string, content any, allowed ...string) (parts []Part) {
	if text, ok := content.(string); ok {
		return []Part{{Kind: Text, Text: text}}
	}
	for i, value := range c.list(at, content) {
		at := item(at, i)
		o := c.object(at, value)
		kind, _ := o["type"].(string)
		if c.one(join(at, "type"), kind, allowed...); c.wrong != nil {
			return parts
		}
		parts = append(parts, block(c, at, kind, o))
	}
	return parts
}

func block(c *check, at, kind string, o object) Part {
	switch kind {
	case "text":
		c.members(at, o, "type text", "citations cache_control")
		text := c.text(join(at, "text"), o["text"])
		if strings.TrimSpace(text) == "" {
			c.refuse(at, "", "%s: text content blocks must be non-empty and contain non-whitespace text", at)
		}
		return Part{Kind: Text, Text: text}
	case "tool_use":
		c.members(at, o, "type id name input", "cache_control caller")
		c.object(join(at, "input"), o["input"])
		return Part{Kind: Call, ID: c.text(at, o["id"]), Tool: c.text(at, o["name"])}
	case "tool_result":
		c.members(at, o, "type tool_use_id", "is_error cache_control content")
		p := Part{Kind: Result, ID: c.text(at, o["tool_use_id"])}
		if content := o["content"]; content != nil && content != "" {
			p.Text = texts(blocks(c, join(at, "content"), content, "text", "image", "document", "search_result"))
		}
		return p
	case "thinking":
		c.members(at, o, "type thinking signature", "")
	case "redacted_thinking":
		c.members(at, o, "type data", "")
	default:
		c.members(at, o, "type source", "cache_control context title citations content")
	}
	return Part{Kind: Other}
}

// turns refuses messages in an order that Anthropic does not take.
func turns(c *check, messages []Message, tools bool) {
	if messages[0].Role != "user" {
		c.refuse("messages", "", `messages: first message must use the "user" role`)
	}
	var open []string // the calls of the message before
	for i, m := range messages {
		at := item("messages", i)
		answered(c, at, m, open)
		open = nil
		for _, p := range m.Parts {
			if (p.Kind == Call || p.Kind == Result) && !tools {
				c.refuse("tools", "", "Requests which include `tool_use` or `tool_result` blocks must define tools.")
			}
			if p.Kind == Call {
				open = append(open, p.ID)
			}
		}
	}
	last := len(messages) - 1
	unanswered(c, item("messages", last), open)
	if m := messages[last]; m.Role == "assistant" {
		if text := texts(m.Parts); strings.TrimRight(text, " \t\r\n") != text {
			c.refuse("messages", "", "messages: final assistant content cannot end with trailing whitespace")
		}
	}
}

// answered refuses a message that does not begin with the results of all calls before it, and of no others.
func answered(c *check, at string, m Message, open []string) {
	for j, p := range m.Parts {
		if p.Kind != Result {
			if len(open) > 0 {
				unanswered(c, at, open)
			}
			continue
		}
		i := slices.Index(open, p.ID)
		if i < 0 {
			c.refuse("messages", "", "%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each "+
				"`tool_result` block must have a corresponding `tool_use` block in the previous message.",
				item(at+".content", j), p.ID)
			return
		}
		open = slices.Delete(open, i, i+1)
	}
	unanswered(c, at, open)
}

func unanswered(c *check, at string, open []string) {
	if len(open) > 0 {
		c.refuse("messages", "", "%s: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
			"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", at, open[0])
	}
}
