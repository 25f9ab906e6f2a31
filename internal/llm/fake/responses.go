package fake

import "slices"

const responsesKnown = `background context_management conversation include instructions max_output_tokens max_tool_calls
	metadata moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
	prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text
	tool_choice tools top_logprobs top_p truncation user`

// smallestOutput is the least max_output_tokens that the Responses API takes.
const smallestOutput = 16

// readResponses reads a request to the Responses API.
func readResponses(c *check, body []byte) (r Request) {
	o := c.decoded(body)
	c.members("", o, "model input", responsesKnown)
	if c.wrong != nil {
		return r
	}
	c.sampling(o, 2)
	r.Model = c.text("model", o["model"])
	r.MaxTokens = c.number("max_output_tokens", o["max_output_tokens"])
	if r.MaxTokens > 0 && r.MaxTokens < smallestOutput {
		c.refuse("max_output_tokens", "integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum "+
			"value. Expected a value >= %d, but got %d instead.", smallestOutput, r.MaxTokens)
	}
	if o["stream"] == true {
		c.refuse("stream", "unsupported_value", "This provider does not stream.")
	}
	if o["instructions"] != nil {
		r.System = c.text("instructions", o["instructions"])
	}
	if text, ok := o["input"].(string); ok {
		r.Messages = []Message{{Role: "user", Parts: []Part{{Kind: Text, Text: text}}}}
		return r
	}
	for i, value := range c.list("input", o["input"]) {
		at := item("input", i)
		if o := c.object(at, value); c.wrong == nil {
			r.add(inputItem(c, at, o))
		}
	}
	pairItems(c, r.Messages)
	return r
}

// pairItems refuses calls without outputs and outputs without calls.
func pairItems(c *check, messages []Message) {
	var called, answered []string
	for _, m := range messages {
		for _, p := range m.Parts {
			switch {
			case p.Kind == Call:
				called = append(called, p.ID)
			case p.Kind == Result && !slices.Contains(called, p.ID):
				c.refuse("input", "", "No tool call found for function call output with call_id %s.", p.ID)
			case p.Kind == Result:
				answered = append(answered, p.ID)
			}
		}
	}
	for _, id := range called {
		if !slices.Contains(answered, id) {
			c.refuse("input", "", "No tool output found for function call %s.", id)
		}
	}
}

func inputItem(c *check, at string, o object) Message {
	kind, _ := o["type"].(string)
	switch kind {
	case "", "message":
		return inputMessage(c, at, o)
	case "function_call":
		c.members(at, o, "type call_id name arguments", "id caller namespace status")
		return Message{Role: "assistant", Parts: []Part{{Kind: Call, ID: c.text(at, o["call_id"]),
			Tool: c.text(at, o["name"]), Text: c.text(at, o["arguments"])}}}
	case "function_call_output":
		c.members(at, o, "type call_id output", "id name namespace caller status")
		text, ok := o["output"].(string)
		if !ok {
			text = texts(inputContent(c, at, o["output"], "input_text"))
		}
		return Message{Role: "tool", Parts: []Part{{Kind: Result, ID: c.text(at, o["call_id"]), Text: text}}}
	case "reasoning":
		c.members(at, o, "type id summary", "encrypted_content content status")
		return Message{Role: "assistant"}
	}
	c.one(join(at, "type"), kind, "message", "function_call", "function_call_output", "reasoning")
	return Message{}
}

func inputMessage(c *check, at string, o object) Message {
	c.members(at, o, "role content", "id type status phase")
	m := Message{Role: c.text(join(at, "role"), o["role"])}
	c.one(join(at, "role"), m.Role, "assistant", "system", "developer", "user")
	if text, ok := o["content"].(string); ok {
		m.Parts = []Part{{Kind: Text, Text: text}}
		return m
	}
	kind := "input_text"
	if m.Role == "assistant" {
		kind = "output_text"
	}
	m.Parts = inputContent(c, at, o["content"], kind)
	return m
}

// inputContent returns the parts of a content whose texts have that type.
func inputContent(c *check, at string, content any, textType string) (parts []Part) {
	for i, value := range c.list(join(at, "content"), content) {
		at := item(join(at, "content"), i)
		o := c.object(at, value)
		kind, _ := o["type"].(string)
		switch {
		case kind == textType:
			c.members(at, o, "type text", "annotations logprobs prompt_cache_breakpoint")
			parts = append(parts, Part{Kind: Text, Text: c.text(join(at, "text"), o["text"])})
		case textType == "output_text":
			c.one(join(at, "type"), kind, "output_text", "refusal")
		default:
			c.one(join(at, "type"), kind, "input_text", "input_image", "input_file", "input_audio")
			parts = append(parts, Part{Kind: Other})
		}
	}
	return parts
}
