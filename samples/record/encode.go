package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encodeOpenAIChat writes an array of Chat Completions messages.
func encodeOpenAIChat(c conversation) ([]byte, error) {
	list := []any{map[string]any{"role": "system", "content": c.system}}
	n := 0
	for _, t := range c.turns {
		if t.user != "" {
			list = append(list, map[string]any{"role": "user", "content": t.user})
			continue
		}
		said := map[string]any{"role": "assistant", "content": t.text}
		var calls, answers []any
		for i, called := range t.calls {
			n++
			id := fmt.Sprintf("call_%06d", n)
			arguments, err := called.arguments()
			if err != nil {
				return nil, err
			}
			calls = append(calls, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": called.tool, "arguments": string(arguments)}})
			answers = append(answers, map[string]any{"role": "tool", "tool_call_id": id, "content": t.results[i].text})
		}
		if calls != nil {
			said["tool_calls"] = calls
		}
		list = append(append(list, said), answers...)
	}
	return document(list, "[\n", "\n]\n")
}

// encodeAnthropic writes a Messages request's system prompt and messages. All results of an assistant's message are in
// the user message that follows it, and a user's words that come right after them are in the same one.
func encodeAnthropic(c conversation) ([]byte, error) {
	var list []any
	var waiting []any // blocks of the next user message
	flush := func() {
		if waiting != nil {
			list = append(list, map[string]any{"role": "user", "content": waiting})
		}
		waiting = nil
	}
	n := 0
	for _, t := range c.turns {
		if t.user != "" {
			waiting = append(waiting, text(t.user))
			continue
		}
		flush()
		blocks := []any{text(t.text)}
		for i, called := range t.calls {
			n++
			id := fmt.Sprintf("toolu_%06d", n)
			input, err := called.arguments()
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, map[string]any{"type": "tool_use", "id": id, "name": called.tool, "input": json.RawMessage(input)})
			waiting = append(waiting, answer(id, t.results[i]))
		}
		list = append(list, map[string]any{"role": "assistant", "content": blocks})
	}
	flush()
	system, err := encode(c.system)
	if err != nil {
		return nil, err
	}
	return document(list, "{\"system\": "+string(system)+",\n\"messages\": [\n", "\n]}\n")
}

func text(s string) any { return map[string]any{"type": "text", "text": s} }

func answer(id string, r result) any {
	block := map[string]any{"type": "tool_result", "tool_use_id": id, "content": r.text}
	if r.failed {
		block["is_error"] = true
	}
	return block
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

// document writes one message a line, so that a difference between two recordings can be read.
func document(list []any, begin, end string) ([]byte, error) {
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
