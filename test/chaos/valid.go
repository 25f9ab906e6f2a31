package main

import (
	"encoding/json"
	"fmt"
	"slices"
)

// invalid returns what a provider would refuse of a view.
func invalid(format string, messages []json.RawMessage) []string {
	if format == anthropic {
		return invalidAnthropic(messages)
	}
	return invalidChat(messages)
}

// chatMessage is what the rules of OpenAI's chat completions look at.
type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
	Answers string `json:"tool_call_id"`
}

// invalidChat checks that every call is answered once, directly after its message, and that nothing else answers.
func invalidChat(messages []json.RawMessage) (problems []string) {
	var open []string // calls that wait for their results
	for i, text := range messages {
		var m chatMessage
		if err := json.Unmarshal(text, &m); err != nil {
			return append(problems, fmt.Sprintf("message %d: %v", i, err))
		}
		at := slices.Index(open, m.Answers)
		switch {
		case m.Role == "tool" && at < 0:
			problems = append(problems, fmt.Sprintf("message %d answers %q, which is no open call", i, m.Answers))
		case m.Role == "tool":
			open = slices.Delete(open, at, at+1)
		case len(open) > 0:
			problems = append(problems, fmt.Sprintf("message %d comes before the results of %q", i, open))
			open = nil
		}
		speaks := m.Role != "assistant" || len(m.Calls) == 0
		if speaks && blank(m.Content) {
			problems = append(problems, fmt.Sprintf("message %d says nothing", i))
		}
		for _, call := range m.Calls {
			open = append(open, call.ID)
		}
	}
	return problems
}

func blank(content json.RawMessage) bool {
	return len(content) == 0 || slices.Contains([]string{"null", `""`, "[]"}, string(content))
}

// anthropicBlock is what the rules of Anthropic's messages look at.
type anthropicBlock struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	ID      string `json:"id"`
	Answers string `json:"tool_use_id"`
}

// invalidAnthropic checks that the user begins, that every call is answered once in the next message, before all
// else there, and that nothing is empty. Messages of one role in a row are joined by the API.
func invalidAnthropic(messages []json.RawMessage) (problems []string) {
	var open []string
	for i, text := range messages {
		var m struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return append(problems, fmt.Sprintf("message %d: %v", i, err))
		}
		if i == 0 && m.Role != "user" {
			problems = append(problems, "the first message is of the "+m.Role)
		}
		blocks, err := blocksOf(m.Content)
		if err != nil || len(blocks) == 0 {
			problems = append(problems, fmt.Sprintf("message %d has no content (%v)", i, err))
		}
		var found []string
		open, found = answered(i, blocks, open)
		problems = append(problems, found...)
	}
	return problems
}

func blocksOf(content json.RawMessage) (blocks []anthropicBlock, err error) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []anthropicBlock{{Type: "text", Text: text}}, nil
	}
	return blocks, json.Unmarshal(content, &blocks)
}

// answered checks the blocks of message i after a message that left calls open, and returns those that it leaves open.
func answered(i int, blocks []anthropicBlock, open []string) (left, problems []string) {
	for _, b := range blocks {
		at := slices.Index(open, b.Answers)
		switch {
		case b.Type == "tool_result" && at < 0:
			problems = append(problems, fmt.Sprintf("message %d answers %q, which is no open call", i, b.Answers))
		case b.Type == "tool_result":
			open = slices.Delete(open, at, at+1)
		case len(open) > 0:
			problems = append(problems, fmt.Sprintf("message %d has a %s before the results of %q", i, b.Type, open))
			open = nil
		case b.Type == "text" && b.Text == "":
			problems = append(problems, fmt.Sprintf("message %d has an empty text", i))
		case b.Type == "tool_use":
			left = append(left, b.ID)
		}
	}
	if len(open) > 0 {
		problems = append(problems, fmt.Sprintf("message %d leaves %q without a result", i, open))
	}
	return left, problems
}
