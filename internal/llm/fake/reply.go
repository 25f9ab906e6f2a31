package fake

// rendered returns the body of an answer in the protocol of its request.
func rendered(c *CallRecord) object {
	a := answerOf(c)
	var body object
	switch c.Request.Protocol {
	case Chat:
		body = a.chat()
	case Responses:
		body = a.responses()
	case Messages:
		body = a.messages()
	}
	if c.Fault == UsageMissing {
		delete(body, "usage")
	}
	return body
}

// answer is what a model says.
type answer struct {
	id, model string
	text      string
	refused   bool // the text is the model's refusal
	cut       bool // the text ends at max_tokens
	usage     Usage
}

func answerOf(c *CallRecord) answer {
	return answer{
		id: c.Input, model: c.Request.Model, text: c.Text, refused: c.Fault == Refusal, cut: c.Fault == Cut,
		usage: c.Usage,
	}
}

func (a answer) chat() object {
	finish := "stop"
	message := object{"role": "assistant", "content": a.text, "refusal": nil, "annotations": []any{}}
	if a.refused {
		message["content"], message["refusal"] = nil, a.text
	}
	if a.cut {
		finish = "length"
	}
	return object{
		"id": "chatcmpl-" + a.id, "object": "chat.completion", "created": 1, "model": a.model,
		"choices": []any{object{"index": 0, "message": message, "logprobs": nil, "finish_reason": finish}},
		"usage": object{
			"prompt_tokens": a.usage.Input, "completion_tokens": a.usage.Output,
			"total_tokens":              a.usage.Input + a.usage.Output,
			"prompt_tokens_details":     object{"cached_tokens": 0, "audio_tokens": 0},
			"completion_tokens_details": object{"reasoning_tokens": 0},
		},
		"service_tier": "default", "system_fingerprint": "fp_fake",
	}
}

func (a answer) responses() object {
	content := object{"type": "output_text", "text": a.text, "annotations": []any{}, "logprobs": []any{}}
	if a.refused {
		content = object{"type": "refusal", "refusal": a.text}
	}
	status := "completed"
	var incomplete any
	if a.cut {
		status = "incomplete"
		incomplete = object{"reason": "max_output_tokens"}
	}
	output := []any{}
	if a.text != "" {
		output = []any{
			object{"type": "reasoning", "id": "rs_" + a.id, "summary": []any{}},
			object{"type": "message", "id": "msg_" + a.id, "role": "assistant", "status": status,
				"content": []any{content}},
		}
	}
	return object{
		"id": "resp_" + a.id, "object": "response", "created_at": 1, "model": a.model, "status": status,
		"error": nil, "incomplete_details": incomplete, "instructions": nil, "metadata": object{}, "output": output,
		"parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": []any{}, "top_p": 1.0,
		"usage": object{
			"input_tokens": a.usage.Input, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": a.usage.Output, "output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens": a.usage.Input + a.usage.Output,
		},
	}
}

func (a answer) messages() object {
	reason := "end_turn"
	content := []any{}
	if a.text != "" {
		content = []any{object{"type": "text", "text": a.text}}
	}
	if a.refused {
		reason = "refusal"
	}
	if a.cut {
		reason = "max_tokens"
	}
	return object{
		"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil,
		"usage": object{
			"input_tokens": a.usage.Input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
			"output_tokens": a.usage.Output, "service_tier": "standard",
		},
	}
}

// refusal returns the error body of a provider.
func refusal(protocol Protocol, p *problem) []byte {
	if protocol == Messages {
		return encode(object{"type": "error", "error": object{"type": p.kind, "message": p.message},
			"request_id": "req_fake"})
	}
	return encode(object{"error": object{"message": p.message, "type": p.kind, "param": null(p.param),
		"code": null(p.code)}})
}

// null returns nil for an empty text.
func null(text string) any {
	if text == "" {
		return nil
	}
	return text
}
