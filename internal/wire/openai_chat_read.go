package wire

import (
	"fmt"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// OpenAI Chat Completions messages, as the types ChatCompletionMessageParam and ChatCompletionContentPart of OpenAI's
// API reference have them (openai-node, resources/chat/completions), with what other servers of that API add.
//
//	role user, assistant, system, developer  User, Assistant, System
//	role tool, function                      Tool: one Result; the id of a function's is "function:" and its name
//	any other role                           Other
//	name                                     Name; of a tool's result its Name
//	content                                  a string one Text, an array a block for each block
//	text, refusal                            Text
//	image_url                                Image; a data: URL is split
//	file, input_audio                        File
//	refusal                                  Text with Refusal
//	reasoning_content                        Reasoning (DeepSeek, vLLM and others)
//	tool_calls, function_call                Call; arguments are the object inside their string, and the string
//	                                         itself if it holds no object. One of type custom is Custom
//	any other block                          Opaque
//	any other member                         Extra, which other formats do not get
//
// What other formats can express and a message cannot:
//
//	images and files of a result       a message of the user after the results, and a note in the result
//	a result that is an error          a text that begins with [Error]
//	images and files of the assistant  a note
//	files elsewhere, by their id       a note; an id is good only between the formats of OpenAI
//	an image's name                    a note in front
//	a document that is a text          that text
//	several thoughts                   one reasoning_content; what only the provider can read is a note in it, and
//	                                   proofs of reasoning are lost
//	anything that is Opaque            its JSON as a text

// The members of a message.
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

var chatNames = []string{
	"role", "content", "refusal", "reasoning_content", "tool_calls", "function_call", "tool_call_id", "name",
}

func (s *scanner) openAIChat(top int) {
	var v [chatMembers]Span
	s.pickMessage(top, chatNames, v[:])
	s.role(v[chatRole])
	switch s.facts.Role {
	case "tool":
		id := s.callID(v[chatToolCallID], func() string { return "/tool_call_id" })
		s.chatResult(id, &v)
	case "function":
		s.chatResult(s.functionCallID(s.name(v[chatName]), "/name"), &v)
	default:
		s.facts.StartsUnit = true
		s.setRole(v[chatRole])
		s.content(v[chatContent], s.chatBlock)
		s.filled = s.filled || s.is(v[chatContent], '"') // "" is content to this provider
		s.chatBesideContent(&v)
		s.chatCalls(&v)
		s.setSpeaker(v[chatName])
	}
}

// chatResult reads a message that is one result.
func (s *scanner) chatResult(id string, v *[chatMembers]Span) {
	content := v[chatContent]
	part := Part{Raw: content, Value: content, CallID: id, Name: s.toolName(v[chatName])}
	if b := s.result(part, content, s.chatBlock); b != nil {
		b.Raw = nil
		b.Name = s.literal(v[chatName])
		s.ir.message().Role = Tool
	}
}

func (s *scanner) chatBlock(raw Span) {
	v := s.block(raw)
	kind := v[blockType]
	switch {
	case s.equals(kind, "text") && s.is(v[blockText], '"'):
		s.text(raw, v[blockText])
	case s.equals(kind, "refusal") && s.is(v[blockRefusal], '"'):
		s.refusal(raw, v[blockRefusal])
	case s.equals(kind, "image_url"):
		if b := s.add(Part{Kind: Image, Raw: raw, Tokens: s.imageURLTokens(v[blockImageURL])}); b != nil {
			b.Media = s.chatImage(v[blockImageURL])
		}
	case s.equals(kind, "file"):
		if b := s.add(Part{Kind: File, Raw: raw, Tokens: tokens.Unknown}); b != nil {
			b.Media = s.chatFile(s.inner(raw, "file"))
		}
	case s.equals(kind, "input_audio"):
		if b := s.add(Part{Kind: File, Raw: raw, Tokens: tokens.Unknown}); b != nil {
			b.Media = s.audio(s.inner(raw, "input_audio"))
		}
	default:
		s.opaque(raw)
	}
}

// chatBesideContent reads the texts beside the content. In the intermediate representation reasoning comes first.
func (s *scanner) chatBesideContent(v *[chatMembers]Span) {
	if refusal := v[chatRefusal]; s.is(refusal, '"') && !s.empty(refusal) {
		s.refusal(refusal, refusal)
	}
	reasoning := v[chatReasoning]
	if !s.is(reasoning, '"') || s.empty(reasoning) {
		return
	}
	if b := s.add(Part{Kind: Reasoning, Raw: reasoning, Value: reasoning, Tokens: s.later(reasoning)}); b != nil {
		blocks := s.ir.message().Blocks
		first := *b
		copy(blocks[1:], blocks)
		blocks[0] = first
	}
}

// chatCalls reads tool_calls, or function_call if there are none: some libraries repeat the first tool call there.
func (s *scanner) chatCalls(v *[chatMembers]Span) {
	called := false
	if calls := v[chatToolCalls]; s.is(calls, '[') {
		i := 0
		for call := range rawjson.Elements(s.body, calls.Start) {
			s.chatCall(i, call)
			i++
		}
		called = i > 0
	}
	if legacy := v[chatFunctionCall]; !called && s.is(legacy, '{') {
		tool := s.chatTool(legacy)
		id := s.functionCallID(s.name(tool[chatToolName]), "/function_call/name")
		s.addChatCall(Part{Raw: legacy, CallID: id}, &tool)
	}
}

// The members of a tool call.
const (
	callID = iota
	callFunction
	callCustom
	callMembers
)

var callNames = []string{"id", "function", "custom"}

func (s *scanner) chatCall(i int, raw Span) {
	if !s.is(raw, '{') {
		s.opaque(raw)
		return
	}
	var v [callMembers]Span
	s.pick(raw.Start, callNames, v[:])
	id := s.callID(v[callID], func() string { return fmt.Sprintf("/tool_calls/%d/id", i) })
	var tool chatToolValues
	if function := v[callFunction]; s.is(function, '{') {
		tool = s.chatTool(function)
	} else if custom := v[callCustom]; s.is(custom, '{') {
		tool = s.chatTool(custom)
	}
	s.addChatCall(Part{Raw: raw, CallID: id}, &tool)
}

// The members of the object that names the tool of a call.
const (
	chatToolName = iota
	chatToolArguments
	chatToolInput
	chatToolMembers
)

var chatToolNames = []string{"name", "arguments", "input"}

type chatToolValues = [chatToolMembers]Span

func (s *scanner) chatTool(at Span) (v chatToolValues) {
	s.pick(at.Start, chatToolNames, v[:])
	return v
}

// addChatCall adds a call with the tool's name and its arguments, or the input if it is a custom tool.
func (s *scanner) addChatCall(part Part, tool *chatToolValues) {
	part.Kind = Call
	part.Name = s.toolName(tool[chatToolName])
	part.Value = tool[chatToolArguments]
	custom := s.absent(part.Value)
	if custom {
		part.Value = tool[chatToolInput]
	}
	part.Tokens = s.tokens(tool[chatToolName]) + s.tokens(part.Value)
	b := s.add(part)
	if b == nil {
		return
	}
	b.Name = s.literal(tool[chatToolName])
	switch {
	case s.absent(part.Value):
	case custom:
		b.Value = s.freeText(part.Value)
		b.Custom = true
	default:
		b.Value = s.arguments(part.Value)
	}
}

// chatImage reads image_url, which some clients write as the URL itself.
func (s *scanner) chatImage(at Span) (m Media) {
	v := s.imageURL(at)
	if s.is(at, '"') {
		v[imageURL] = at
	}
	m.Detail = s.literal(v[imageDetail])
	s.openAIURL(&m, v[imageURL])
	return m
}

// The members of a file.
const (
	chatFileData = iota
	chatFileID
	chatFilename
	chatFileMembers
)

var chatFileNames = []string{"file_data", "file_id", "filename"}

func (s *scanner) chatFile(at Span) (m Media) {
	if !s.is(at, '{') {
		return m
	}
	var v [chatFileMembers]Span
	s.pick(at.Start, chatFileNames, v[:])
	m.ID = s.literal(v[chatFileID])
	m.Name = s.literal(v[chatFilename])
	if !s.openAIData(&m, v[chatFileData]) {
		m.Data = s.literal(v[chatFileData])
	}
	return m
}
