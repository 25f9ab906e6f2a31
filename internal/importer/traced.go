package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/session"
)

// side is one side of an exchange in a trace: what a model was given, or what it answered. Every framework writes it in
// another way: as a provider's request or response, a list of messages of its own, a text, or any of these in a string.
type side struct {
	draft *draft
	name  string
	said  []said
	calls [][]byte       // ids of calls, without those that a result without an id answered
	open  map[string]int // how many calls of an id have no result
}

func newSide(d *draft, name string) *side { return &side{draft: d, name: name, open: map[string]int{}} }

// said is one message. A text without a message around it fits every format.
type said struct {
	role   string
	text   []byte // a string literal
	body   []byte
	format session.Format // that body must be of, "" for any
}

var errNoMessages = errors.New("no messages, and no text")

// read reads a value. A text in it is of the role.
func (s *side) read(raw []byte, role string) error {
	raw = unfolded(raw)
	switch {
	case !has(raw):
		return nil
	case isString(raw):
		if nonEmpty(raw) != nil {
			s.said = append(s.said, said{role: role, text: raw})
		}
		return nil
	}
	if list := parseArray(raw); list != nil {
		return s.list(list, role)
	}
	o := parseObject(raw)
	switch {
	case o == nil:
		return fmt.Errorf("%s: %w", s.name, errNoMessages)
	case len(o) == 0:
		return nil
	}
	return s.object(raw, o, role)
}

// unfolded returns the JSON that a string holds, or the value itself.
func unfolded(raw []byte) []byte {
	if !isString(raw) {
		return raw
	}
	inner := unquoted(raw)
	if !validText(inner) || parseObject(inner) == nil && parseArray(inner) == nil {
		return raw
	}
	return inner
}

// validText reports whether bytes are JSON without surrogates that are alone, which only an escape can write.
func validText(raw []byte) bool { return utf8.Valid(raw) && json.Valid(raw) }

// list reads the elements of a list: of a batch, only the first.
func (s *side) list(list [][]byte, role string) error {
	if inner := parseArray(firstOf(list)); len(list) == 1 && len(inner) > 0 && !isString(inner[0]) {
		list = inner
	}
	if o := parseObject(firstOf(list)); o.has("toolCallId") && !o.has("role") {
		calls := fill("[%]", bytes.Join(list, []byte{','}))
		return s.chat(nil, object{"role": quote("assistant"), "toolCalls": calls}, role)
	}
	for i, raw := range list {
		if pair := parseArray(raw); len(pair) == 2 && isString(pair[0]) && isString(pair[1]) {
			raw = message(tracedRole(stringValue(pair[0])), pair[1])
		}
		if isString(raw) {
			if err := s.read(raw, role); err != nil {
				return err
			}
			continue
		}
		if err := s.message(raw, parseObject(raw), role); err != nil {
			return fmt.Errorf("%s: message %d: %w", s.name, i+1, err)
		}
	}
	return nil
}

func firstOf(list [][]byte) []byte {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// tracedInner are the members in which an object has the messages or the text that it is about.
var tracedInner = []string{
	"messages", "choices.0.message", "generations", "message", "prompt", "prompts", "input", "inputs", "new_message",
	"args", "question", "query", "output", "outputs", "response", "result", "answer", "completion",
}

// object reads an object: a request, a response, a message, or one that has any of these in a member.
func (s *side) object(raw []byte, o object, role string) error {
	system := o.first("system", "instructions", "systemInstruction", "system_instruction", "config.system_instruction",
		"config.systemInstruction")
	if o.has("messages") || o.has("contents") || o.has("input") {
		s.system(o, system)
	}
	switch {
	case o.has("contents"):
		return s.contents(o["contents"])
	case o.has("candidates.0.content"):
		return s.contents(list([][]byte{o.at("candidates.0.content")}))
	case o.has("content.parts"):
		return s.contents(list([][]byte{o["content"]}))
	case o.text("object") == "response" && parseArray(o["output"]) != nil:
		return s.list(parseArray(o["output"]), role)
	case s.isMessage(o):
		return s.message(raw, o, role)
	}
	for _, path := range tracedInner {
		inner := o.at(path)
		if !has(inner) {
			continue
		}
		if path == "generations" {
			inner = or(parseObject(firstElement(or(firstElement(inner), "[]")))["message"],
				or(parseObject(firstElement(or(firstElement(inner), "[]")))["text"], "null"))
		}
		return s.read(inner, role)
	}
	return fmt.Errorf("%s: %w: an object with %s", s.name, errNoMessages, memberList(o))
}

// isMessage reports whether an object is a message, not one that has messages.
func (s *side) isMessage(o object) bool {
	_, role := langChainFields(o)
	return role != "" || o.has("role") || o.has("toolCalls") || o.has("toolCallId") || responsesItems[o.text("type")] ||
		(isString(o["content"]) || isString(o["text"])) && !o.has("messages") && !o.has("generations")
}

// system adds a system prompt that stands beside the messages.
func (s *side) system(o object, prompt []byte) {
	if o.has("contents") {
		if body := geminiPrompt(or(prompt, "null")); has(prompt) && body != nil {
			s.said = append(s.said, said{body: body, format: session.Gemini})
		}
		return
	}
	switch {
	case nonEmpty(prompt) != nil:
		s.said = append(s.said, said{role: "system", text: prompt})
	case parseArray(prompt) != nil && o.has("system"):
		s.said = append(s.said, said{body: message("system", prompt), format: session.Anthropic})
	}
}

// contents adds contents of Gemini, which may be a text.
func (s *side) contents(raw []byte) error {
	if isString(raw) {
		return s.read(raw, "user")
	}
	for i, raw := range elementsOf(raw) {
		o := parseObject(raw)
		var parts [][]byte
		for _, part := range geminiParts(or(o["parts"], string(raw))) {
			if part = geminiNamed(part); part != nil {
				parts = append(parts, part)
			}
		}
		if parts == nil {
			return fmt.Errorf("%s: content %d has no parts", s.name, i+1)
		}
		role := quote(map[bool]string{true: "user", false: "model"}[s.name == "input"])
		body := fill(`{"role":%,"parts":%}`, or(nonEmpty(o["role"]), string(role)), list(parts))
		s.said = append(s.said, said{body: body, format: session.Gemini})
	}
	return nil
}

// formatOf returns the format of the first message that fits only one, and OpenAI Chat if there is none.
func formatOf(sides ...*side) session.Format {
	for _, s := range sides {
		for _, m := range s.said {
			if m.format != "" {
				return m.format
			}
		}
	}
	return session.OpenAIChat
}

// messages returns the side's messages in a format.
func (s *side) messages(format session.Format) ([][]byte, error) {
	var bodies [][]byte
	for i, m := range s.said {
		switch {
		case m.format != "" && m.format != format:
			return nil, fmt.Errorf("%s: message %d is of %s, those before it of %s", s.name, i+1, m.format, format)
		case m.body == nil && format == session.Gemini:
			role := strings.Replace(m.role, "assistant", "model", 1)
			m.body = fill(`{"role":%,"parts":[{"text":%}]}`, quote(role), m.text)
		case m.body == nil:
			m.body = message(m.role, m.text)
		}
		bodies = append(bodies, m.body)
	}
	return bodies, nil
}
