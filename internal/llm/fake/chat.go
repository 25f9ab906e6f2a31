package fake

import "slices"

const (
	chatKnown = `service_tier modalities verbosity reasoning_effort max_completion_tokens frequency_penalty
		presence_penalty web_search_options top_logprobs response_format audio store moderation stream stop logit_bias
		logprobs max_tokens n prediction seed stream_options tools tool_choice parallel_tool_calls function_call
		functions metadata temperature top_p user safety_identifier prompt_cache_key prompt_cache_options
		prompt_cache_retention`
	chatText = "prompt_cache_breakpoint"
)

// readChat reads a request to Chat Completions.
func readChat(c *check, body []byte) (r Request) {
	o := c.decoded(body)
	c.members("", o, "model messages", chatKnown)
	if c.wrong != nil {
		return r
	}
	c.sampling(o, 2)
	r.Model = c.text("model", o["model"])
	if o["max_tokens"] != nil && o["max_completion_tokens"] != nil {
		c.refuse("max_tokens", "invalid_parameter_combination",
			"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	r.MaxTokens = c.number("max_tokens", o["max_tokens"])
	r.MaxTokens = max(r.MaxTokens, c.number("max_completion_tokens", o["max_completion_tokens"]))
	if o["stream"] == true {
		c.refuse("stream", "unsupported_value", "This provider does not stream.")
	}
	chatTools(c, o)
	open := []string{} // the calls of the last assistant message that have no result yet
	for i, value := range c.list("messages", o["messages"]) {
		at := item("messages", i)
		m := c.object(at, value)
		if c.wrong != nil {
			return r
		}
		read := chatMessage(c, at, m)
		if read.Role != "tool" && len(open) > 0 {
			c.refuse("messages", "", "An assistant message with 'tool_calls' must be followed by tool messages "+
				"responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s",
				open[0])
		}
		open = pair(c, at, read, open)
		r.add(read)
	}
	if len(open) > 0 {
		c.refuse("messages", "", "An assistant message with 'tool_calls' must be followed by tool messages responding "+
			"to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", open[0])
	}
	return r
}

// pair returns the calls that wait for a result after a message.
func pair(c *check, at string, m Message, open []string) []string {
	for _, p := range m.Parts {
		i := slices.Index(open, p.ID)
		switch {
		case p.Kind == Call:
			open = append(open, p.ID)
		case p.Kind == Result && i < 0:
			c.refuse(at, "", "Invalid parameter: messages with role 'tool' must be a response to a preceding message "+
				"with 'tool_calls'.")
		case p.Kind == Result:
			open = slices.Delete(open, i, i+1)
		}
	}
	return open
}

// add adds a message, or its text to the system prompt.
func (r *Request) add(m Message) {
	if m.Role != "system" && m.Role != "developer" {
		r.Messages = append(r.Messages, m)
		return
	}
	for _, p := range m.Parts {
		if r.System != "" {
			r.System += "\n"
		}
		r.System += p.Text
	}
}

// chatTools refuses tools that Chat Completions does not take.
func chatTools(c *check, o object) {
	if o["tools"] == nil {
		if choice, ok := o["tool_choice"]; ok && choice != "none" {
			c.refuse("tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' "+
				"are specified.")
		}
		return
	}
	for i, value := range c.list("tools", o["tools"]) {
		tool := c.object(item("tools", i), value)
		c.members(item("tools", i), tool, "type function", "")
	}
}

func chatMessage(c *check, at string, o object) Message {
	m := Message{Role: c.text(join(at, "role"), o["role"])}
	switch m.Role {
	case "system", "developer", "user":
		c.members(at, o, "role content", "name")
		m.Parts = chatContent(c, at, o["content"], m.Role == "user")
	case "assistant":
		c.members(at, o, "role", "content name refusal audio function_call tool_calls")
		if o["content"] != nil {
			m.Parts = chatContent(c, at, o["content"], false)
		}
		m.Parts = append(m.Parts, chatCalls(c, at, o["tool_calls"])...)
		if len(m.Parts) == 0 && o["refusal"] == nil {
			c.refuse(at, "", "Invalid value for 'content': expected a string, got null.")
		}
	case "tool":
		c.members(at, o, "role content tool_call_id", "")
		id := c.text(join(at, "tool_call_id"), o["tool_call_id"])
		m.Parts = []Part{{Kind: Result, ID: id, Text: texts(chatContent(c, at, o["content"], false))}}
	default:
		c.one(join(at, "role"), m.Role, "system", "assistant", "user", "function", "tool", "developer")
	}
	return m
}

// chatContent returns the parts of a message's content.
func chatContent(c *check, at string, content any, media bool) (parts []Part) {
	if text, ok := content.(string); ok {
		return []Part{{Kind: Text, Text: text}}
	}
	for i, value := range c.list(join(at, "content"), content) {
		at := item(join(at, "content"), i)
		o := c.object(at, value)
		kind, _ := o["type"].(string)
		switch {
		case kind == "text":
			c.members(at, o, "type text", chatText)
			parts = append(parts, Part{Kind: Text, Text: c.text(join(at, "text"), o["text"])})
		case kind == "refusal":
			c.members(at, o, "type refusal", "")
		case media && (kind == "image_url" || kind == "input_audio" || kind == "file"):
			c.members(at, o, "type "+kind, chatText)
			parts = append(parts, Part{Kind: Other})
		default:
			c.one(join(at, "type"), kind, "text", "image_url", "input_audio", "refusal", "file")
			c.refuse(at, "invalid_value", "Invalid content type '%s' in a message of this role.", kind)
		}
	}
	return parts
}

func chatCalls(c *check, at string, calls any) (parts []Part) {
	if calls == nil {
		return nil
	}
	for i, value := range c.list(join(at, "tool_calls"), calls) {
		at := item(join(at, "tool_calls"), i)
		o := c.object(at, value)
		c.members(at, o, "id type function", "")
		function := c.object(join(at, "function"), o["function"])
		c.members(join(at, "function"), function, "name arguments", "")
		parts = append(parts, Part{Kind: Call, ID: c.text(join(at, "id"), o["id"]),
			Tool: c.text(at, function["name"]), Text: c.text(at, function["arguments"])})
	}
	return parts
}

func texts(parts []Part) (all string) {
	for _, p := range parts {
		all += p.Text
	}
	return all
}
