package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

type chatMessage struct {
	Role    string     `json:"role"`
	CallID  string     `json:"tool_call_id,omitempty"`
	Content string     `json:"content"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// encodeOpenAIChat writes an array of Chat Completions messages.
func encodeOpenAIChat(c conversation) ([]byte, error) {
	list := []any{chatMessage{Role: "system", Content: c.system}}
	n := 0
	for _, t := range c.turns {
		if t.user != "" {
			list = append(list, chatMessage{Role: "user", Content: t.user})
			continue
		}
		said := chatMessage{Role: "assistant", Content: t.text}
		var answers []any
		for i, called := range t.calls {
			n++
			id := fmt.Sprintf("call_%06d", n)
			arguments, err := called.arguments()
			if err != nil {
				return nil, err
			}
			said.Calls = append(said.Calls, chatCall{id, "function", chatFunction{called.tool, string(arguments)}})
			answers = append(answers, chatMessage{Role: "tool", CallID: id, Content: t.results[i].text})
		}
		list = append(append(list, said), answers...)
	}
	return document("[\n", list, "\n]\n")
}

type anthropicMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type toolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResult struct {
	Type    string `json:"type"`
	ID      string `json:"tool_use_id"`
	IsError bool   `json:"is_error,omitempty"`
	Content string `json:"content"`
}

// encodeAnthropic writes a Messages request's system prompt and messages. The results of an assistant's message are all
// in the user message that follows it, and so is what the user says right after them.
func encodeAnthropic(c conversation) ([]byte, error) {
	var list, answer []any // answer: blocks of the next user message
	n := 0
	for _, t := range c.turns {
		if t.user != "" {
			answer = append(answer, textBlock{"text", t.user})
			continue
		}
		list = append(list, anthropicMessage{"user", answer})
		said := anthropicMessage{"assistant", []any{textBlock{"text", t.text}}}
		answer = nil
		for i, called := range t.calls {
			n++
			id := fmt.Sprintf("toolu_%06d", n)
			input, err := called.arguments()
			if err != nil {
				return nil, err
			}
			said.Content = append(said.Content, toolUse{"tool_use", id, called.tool, input})
			answer = append(answer, toolResult{"tool_result", id, t.results[i].failed, t.results[i].text})
		}
		list = append(list, said)
	}
	if len(answer) > 0 {
		list = append(list, anthropicMessage{"user", answer})
	}
	system, err := encode(c.system)
	if err != nil {
		return nil, err
	}
	return document("{\"system\": "+string(system)+",\n\"messages\": [\n", list, "\n]}\n")
}

// arguments is a JSON object with the arguments in their order.
func (c call) arguments() ([]byte, error) {
	var b bytes.Buffer
	for i, a := range c.args {
		value, err := encode(a.value)
		if err != nil {
			return nil, err
		}
		separator := ", "
		if i == 0 {
			separator = "{"
		}
		fmt.Fprintf(&b, "%s%q: %s", separator, a.name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// document writes one message a line, so that two recordings can be compared.
func document(begin string, list []any, end string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(begin)
	for i, m := range list {
		line, err := encode(m)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		b.Write(line)
	}
	b.WriteString(end)
	return b.Bytes(), nil
}

// encode leaves <, > and & as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
