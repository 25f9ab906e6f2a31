package samples_test

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encoders write a conversation in a provider's format, one message a line, so that two recordings can be compared.
var encoders = map[string]func(system string, turns []turn) ([]byte, error){
	"openai-chat": encodeOpenAIChat, "anthropic": encodeAnthropic,
}

// object is a JSON object whose members keep their order.
type object []argument

func (o object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, member := range o {
		value, err := encode(member.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%q:%s", member.name, value)
	}
	return append(out, '}'), nil
}

// encodeOpenAIChat writes an array of Chat Completions messages.
func encodeOpenAIChat(system string, turns []turn) ([]byte, error) {
	list := []any{object{{"role", "system"}, {"content", system}}}
	n := 0
	for _, t := range turns {
		if t.user != "" {
			list = append(list, object{{"role", "user"}, {"content", t.user}})
			continue
		}
		var calls, answers []any
		for i, c := range t.calls {
			n++
			id := fmt.Sprintf("call_%06d", n)
			name, arguments, err := encodeCall(c)
			if err != nil {
				return nil, err
			}
			function := object{{"name", name}, {"arguments", string(arguments)}}
			calls = append(calls, object{{"id", id}, {"type", "function"}, {"function", function}})
			answers = append(answers, object{{"role", "tool"}, {"tool_call_id", id}, {"content", t.results[i].text}})
		}
		message := object{{"role", "assistant"}, {"content", t.says}}
		if calls != nil {
			message = append(message, argument{"tool_calls", calls})
		}
		list = append(append(list, message), answers...)
	}
	return document("[\n", list, "\n]\n")
}

// encodeAnthropic writes a Messages request's system prompt and messages. The results of an assistant's message are all
// in the user message that follows it, and so is what the user says right after them.
func encodeAnthropic(system string, turns []turn) ([]byte, error) {
	var list, answer []any // answer: blocks of the next user message
	n := 0
	for _, t := range turns {
		if t.user != "" {
			answer = append(answer, object{{"type", "text"}, {"text", t.user}})
			continue
		}
		list = append(list, object{{"role", "user"}, {"content", answer}})
		answer = nil
		blocks := []any{object{{"type", "text"}, {"text", t.says}}}
		for i, c := range t.calls {
			n++
			id := fmt.Sprintf("toolu_%06d", n)
			name, input, err := encodeCall(c)
			if err != nil {
				return nil, err
			}
			blocks = append(
				blocks, object{{"type", "tool_use"}, {"id", id}, {"name", name}, {"input", json.RawMessage(input)}},
			)
			found := object{{"type", "tool_result"}, {"tool_use_id", id}}
			if t.results[i].failed {
				found = append(found, argument{"is_error", true})
			}
			answer = append(answer, append(found, argument{"content", t.results[i].text}))
		}
		list = append(list, object{{"role", "assistant"}, {"content", blocks}})
	}
	if len(answer) > 0 {
		list = append(list, object{{"role", "user"}, {"content", answer}})
	}
	prompt, err := encode(system)
	if err != nil {
		return nil, err
	}
	return document("{\"system\": "+string(prompt)+",\n\"messages\": [\n", list, "\n]}\n")
}

// encodeCall returns the tool's name and its arguments, an object as a model writes it.
func encodeCall(c call) (name string, arguments []byte, err error) {
	name, args := c.tool()
	for i, a := range args {
		value, err := encode(a.value)
		if err != nil {
			return "", nil, err
		}
		separator := ", "
		if i == 0 {
			separator = "{"
		}
		arguments = fmt.Appendf(arguments, "%s%q: %s", separator, a.name, value)
	}
	return name, append(arguments, '}'), nil
}

func document(begin string, list []any, end string) ([]byte, error) {
	lines := make([][]byte, len(list))
	for i, message := range list {
		var err error
		if lines[i], err = encode(message); err != nil {
			return nil, err
		}
	}
	return fmt.Appendf(nil, "%s%s%s", begin, bytes.Join(lines, []byte(",\n")), end), nil
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
