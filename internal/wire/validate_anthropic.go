package wire

// anthropic goes turn by turn: the provider joins messages of one role that follow each other before it looks at them.
func (v *validator) anthropic() {
	ids := map[string]bool{}
	for start := PinnedHead(v.messages); start < len(v.messages); {
		end := start + 1
		for end < len(v.messages) && v.messages[end].Role == v.messages[start].Role {
			end++
		}
		v.anthropicTurn(start, end)
		for i := start; i < end; i++ {
			v.anthropicIDs(i, ids)
			v.anthropicContent(i)
		}
		start = end
	}
}

// anthropicTurn checks how results meet calls. A last turn of nothing but results may still lack some.
func (v *validator) anthropicTurn(start, end int) {
	answered := map[string]bool{}
	others, results := false, false
	for i := start; i < end; i++ {
		for _, p := range v.messages[i].Parts {
			if p.Kind != Result {
				others = true
				continue
			}
			v.anthropicResult(i, p, answered)
			// V-A3: "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks."
			if others {
				v.report("V-A3", i, "result %q stands behind other content", p.CallID)
			}
			results = true
		}
	}
	// V-A1: "`tool_use` ids were found without `tool_result` blocks immediately after."
	if inFlight := end == len(v.messages) && results && !others; !inFlight {
		v.abandon("V-A1")
	}
	for i := start; i < end; i++ {
		v.call(i)
	}
}

func (v *validator) anthropicResult(i int, p Part, answered map[string]bool) {
	switch {
	case v.answer(p.CallID):
		answered[p.CallID] = true
	// V-A4: "each tool_use must have a single result. Found multiple `tool_result` blocks with id."
	case answered[p.CallID]:
		v.report("V-A4", i, "call %q is answered twice", p.CallID)
	// V-A2: "unexpected `tool_use_id` found in `tool_result` blocks."
	default:
		v.report("V-A2", i, "result %q answers no call of the turn before it", p.CallID)
	}
}

// anthropicIDs is the rest of V-A4: "`tool_use` ids must be unique", "String should match pattern '^[a-zA-Z0-9_-]+$'".
func (v *validator) anthropicIDs(i int, seen map[string]bool) {
	for _, p := range v.messages[i].Parts {
		if p.Kind != Call {
			continue
		}
		if !idPattern(p.CallID) {
			v.report("V-A4", i, "call id %q is not made of letters, digits, _ and -", p.CallID)
		}
		if seen[p.CallID] {
			v.report("V-A4", i, "call id %q was used before", p.CallID)
		}
		seen[p.CallID] = true
	}
}

func idPattern(id string) bool {
	for _, c := range id {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return id != ""
}

func (v *validator) anthropicContent(i int) {
	m := v.messages[i]
	switch {
	// V-A5: "text content blocks must be non-empty."
	case m.Flags&FlagEmptyText != 0:
		v.report("V-A5", i, "a text block is empty")
	// V-A5: "all messages must have non-empty content except for the optional final assistant message."
	case m.Flags&FlagEmpty != 0 && !(m.Role == "assistant" && i == len(v.messages)-1):
		v.report("V-A5", i, "the message has no content")
	}
}
