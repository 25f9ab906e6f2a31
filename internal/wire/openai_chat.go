package wire

import (
	"fmt"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

const (
	chatRole = iota
	chatContent
	chatRefusal
	chatReasoning
	chatToolCalls
	chatFunctionCall
	chatToolCallID
	chatName
	chatMembers
)

var chatNames = []string{"role", "content", "refusal", "reasoning_content", "tool_calls", "function_call", "tool_call_id", "name"}

func (s *scanner) openAIChat(top int) {
	var v [chatMembers]Span
	s.pick(top, chatNames, v[:])
	s.role(v[chatRole])
	switch s.facts.Role {
	case "tool":
		id := s.callID(v[chatToolCallID], func() string { return "/tool_call_id" })
		s.result(Part{Raw: v[chatContent], Value: v[chatContent], CallID: id, Name: s.name(v[chatName])})
	case "function":
		name := s.name(v[chatName])
		s.result(Part{Raw: v[chatContent], Value: v[chatContent], CallID: s.functionCallID(name, "/name"), Name: name})
	default:
		s.facts.StartsUnit = true
		s.content(v[chatContent], s.chatBlock)
		s.filled = s.filled || s.is(v[chatContent], '"') // "" is content to this provider
		s.chatCalls(&v)
	}
}

func (s *scanner) chatBlock(raw Span) {
	v := s.block(raw)
	switch kind := v[blockType]; {
	case s.isText(kind, "text") && s.is(v[blockText], '"'):
		s.text(raw, v[blockText])
	case s.isText(kind, "refusal") && s.is(v[blockRefusal], '"'):
		s.text(raw, v[blockRefusal])
	case s.isText(kind, "image_url"):
		s.add(Part{Kind: Image, Raw: raw, Tokens: s.imageURLTokens(v[blockImageURL])})
	case s.isText(kind, "file"), s.isText(kind, "input_audio"):
		s.add(Part{Kind: File, Raw: raw, Tokens: tokens.Unknown})
	default:
		s.opaque(raw)
	}
}

// chatCalls adds what an assistant message has besides its content.
func (s *scanner) chatCalls(v *[chatMembers]Span) {
	if refusal := v[chatRefusal]; s.is(refusal, '"') && !s.empty(refusal) {
		s.add(Part{Kind: Text, Raw: refusal, Value: refusal, Tokens: s.later(refusal)})
	}
	if reasoning := v[chatReasoning]; s.is(reasoning, '"') && !s.empty(reasoning) {
		s.add(Part{Kind: Reasoning, Raw: reasoning, Value: reasoning, Tokens: s.later(reasoning)})
	}
	called := false
	if calls := v[chatToolCalls]; s.is(calls, '[') {
		i := 0
		for call := range rawjson.Elements(s.body, calls.Start) {
			s.chatCall(i, call)
			i++
		}
		called = i > 0
	}
	// Some libraries repeat the first tool call in the legacy member.
	if legacy := v[chatFunctionCall]; !called && s.is(legacy, '{') {
		part := s.chatFunction(Part{Kind: Call, Raw: legacy}, legacy)
		part.CallID = s.functionCallID(part.Name, "/function_call/name")
		s.add(part)
	}
}

var callNames = []string{"id", "function", "custom"}

func (s *scanner) chatCall(i int, raw Span) {
	if !s.is(raw, '{') {
		s.opaque(raw)
		return
	}
	var v [3]Span
	s.pick(raw.Start, callNames, v[:])
	part := Part{Kind: Call, Raw: raw}
	part.CallID = s.callID(v[0], func() string { return fmt.Sprintf("/tool_calls/%d/id", i) })
	if function := v[1]; s.is(function, '{') {
		part = s.chatFunction(part, function)
	} else if custom := v[2]; s.is(custom, '{') {
		part = s.chatFunction(part, custom)
	}
	s.add(part)
}

var functionNames = []string{"name", "arguments", "input"}

// chatFunction reads name and arguments (the input, if the tool is a custom one) of the object at.
func (s *scanner) chatFunction(part Part, at Span) Part {
	var v [3]Span
	s.pick(at.Start, functionNames, v[:])
	part.Name, part.Value = s.name(v[0]), v[1]
	if s.absent(part.Value) {
		part.Value = v[2]
	}
	part.Tokens = s.tokens(v[0]) + s.tokens(part.Value)
	return part
}

// functionCallID makes the id by which a legacy function_call and its message of role function, which have none, are
// paired: by the function's name.
func (s *scanner) functionCallID(name, pointer string) string {
	id := "function:" + name
	if len(id) > session.MaxCallIDBytes {
		s.fail(pointer, "the name of a function has %d bytes, at most %d are possible", len(name), session.MaxCallIDBytes-len("function:"))
	}
	return id
}
