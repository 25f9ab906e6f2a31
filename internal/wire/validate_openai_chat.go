package wire

func (v *validator) openAIChat() {
	for i, m := range v.messages {
		if m.Role == "tool" || m.Role == "function" {
			v.chatResult(i)
			continue
		}
		// V-C1: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
		v.abandon("V-C1")
		v.call(i)
		v.chatContent(i)
	}
}

func (v *validator) chatResult(i int) {
	m := v.messages[i]
	for _, p := range m.Parts {
		// V-C2: "Messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
		if p.Kind == Result && !v.answer(p.CallID) {
			v.report("V-C2", i, "result %q answers no open call of the assistant message before it", p.CallID)
		}
	}
	// V-C3: the schema of a tool message's content knows a string and an array of text parts only.
	if m.Flags&FlagResultNotText != 0 {
		v.report("V-C3", i, "the content of a tool message is a string or an array of text parts")
	}
	v.chatArray(i)
}

// chatContent is V-C3 for other messages: the schema requires an assistant's content unless it has calls.
func (v *validator) chatContent(i int) {
	v.chatArray(i)
	if m := v.messages[i]; m.Role == "assistant" && m.Flags&(FlagEmpty|FlagEmptyArray) == FlagEmpty {
		v.report("V-C3", i, "an assistant message has content or calls")
	}
}

// chatArray is V-C3 for arrays: the schema wants at least one part.
func (v *validator) chatArray(i int) {
	if v.messages[i].Flags&FlagEmptyArray != 0 {
		v.report("V-C3", i, "content is an array without parts")
	}
}
