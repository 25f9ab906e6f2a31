package wire

import (
	"fmt"

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
//	thinking                                 Reasoning (Mistral)
//	image_url                                Image; a data: URL is split
//	file, input_audio                        File
//	refusal                                  Text with Refusal
//	reasoning_content, reasoning,
//	reasoning_details, thinking_blocks       Reasoning: see chat_thoughts.go
//	extra_content of a call, its id          Signature: see google_chat.go
//	tool_calls, function_call                Call; arguments are the object inside their string, and the string
//	                                         itself if it holds no object. One of type custom is Custom
//	any other block                          Opaque
//	any other member                         Extra, which other formats do not get
//
// docs/formats.md has what becomes of what other formats can express and this one cannot.

func (s *scanner) openAIChat(top Span) {
	s.top = s.object(top)
	v := &s.top
	s.role(v.at("role"))
	s.keepOthers(v, "role", "content", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call",
		"tool_call_id", "name")
	switch s.facts.Role {
	case "tool":
		id := s.callID(v.at("tool_call_id"), func() string { return "/tool_call_id" })
		s.chatResult(id, v)
	case "function":
		s.chatResult(s.functionCallID(s.name(v.at("name")), "/name"), v)
	default:
		s.facts.StartsUnit = true
		s.cites(v, "annotations", "audio")
		s.content(v.at("content"), s.chatBlock)
		s.filled = s.filled || s.is(v.at("content"), '"') || s.saysSound(v) // "" is content to this provider
		s.declaresTools(v)
		s.chatBesideContent(v)
		s.chatCalls(v)
		s.chatOtherThoughts(v)
		if s.ir != nil && s.ir.message().Role != Other { // else the name is that of the role
			s.ir.message().Name = s.literal(v.at("name"))
		}
	}
	if s.ir == nil && s.reader == nil {
		s.common = s.isCommonChat(v)
		s.misnamed = s.misnamed || s.is(v.at("name"), '"') && !takesChatName(s.facts.Role, s.name(v.at("name")))
	}
}

// takesChatName reports whether a message may have a name: that of the tool if it is a result, else that of the
// speaker.
func takesChatName(role, name string) bool {
	if forResult(role) {
		return chat.Tools.Take(name)
	}
	return chat.Speakers.Take(name)
}

// chatResult reads a message that is one result.
func (s *scanner) chatResult(id string, v *object) {
	content := v.at("content")
	part := Part{Raw: content, Value: content, CallID: id, Name: s.toolName(v.at("name"))}
	if b := s.result(part, content, s.chatBlock); b != nil {
		b.Raw = nil
		b.Name = s.literal(v.at("name"))
		s.ir.message().Role = Tool
		s.ir.message().Name = nil
	}
}

func (s *scanner) chatBlock(raw Span) {
	v := s.object(raw)
	kind := v.at("type")
	switch {
	case s.equals(kind, "text") && s.is(v.at("text"), '"'):
		s.text(raw, v.at("text"))
	case s.equals(kind, "refusal") && s.is(v.at("refusal"), '"'):
		s.refusal(raw, v.at("refusal"))
	case s.equals(kind, "image_url"):
		s.chatImage(raw, v.at("image_url"))
	case s.equals(kind, "file"):
		file := s.object(v.at("file"))
		cost := s.fileTokens(file.at("file_data"), "", tokens.CostsOfOpenAI)
		s.media(File, raw, cost, func() Media { return s.openAIFile(&file) })
	case s.equals(kind, "input_audio"):
		sound := v.at("input_audio")
		s.media(File, raw, s.soundTokens(sound), func() Media { return s.audio(sound) })
	case s.ir != nil && !s.inside && s.equals(kind, thinkingBlock) && s.facts.Role == "assistant":
		s.chatThinking(raw, v.at("thinking"))
	default:
		s.opaque(raw)
		s.loose = true // not every server takes it
	}
}

// chatBesideContent reads the texts beside the content. In the intermediate representation reasoning comes first.
func (s *scanner) chatBesideContent(v *object) {
	if refusal := v.at("refusal"); s.is(refusal, '"') && !s.empty(refusal) {
		s.refusal(refusal, refusal)
	}
	if at := v.at(reasoningMember); s.isSaid(at) {
		s.chatThought(s.reasoning(at, at))
	}
}

// chatCalls reads tool_calls, or function_call if there are none: some libraries repeat the first tool call there.
func (s *scanner) chatCalls(v *object) {
	i, calls := 0, 0
	for call := range s.elements(v.at("tool_calls")) {
		if s.chatCall(i, call) {
			calls++
		}
		i++
	}
	s.loose = s.loose || i > chat.MaxCalls
	legacy := v.at("function_call")
	tool := s.object(legacy)
	switch {
	case !s.is(legacy, '{'):
	case s.isVoidCall(&object{}, &tool): // it is left out as a member
	case calls > 0 && s.ir != nil:
		s.ir.twin = legacy.Of(s.body)
	case calls > 0:
		s.misnamed = !chat.Tools.Take(s.name(tool.at("name")))
	default:
		id := s.functionCallID(s.name(tool.at("name")), "/function_call/name")
		s.addChatCall(Part{Raw: legacy, CallID: id}, &tool, false)
	}
}

// isVoidCall reports whether a call says nothing, neither its id nor what is called: libraries that put a stream
// together leave such ones.
func (s *scanner) isVoidCall(v, tool *object) bool {
	return s.empty(v.at("id")) && s.empty(tool.at("name")) && s.empty(tool.at("arguments")) && s.empty(tool.at("input"))
}

// chatCall reads an element of tool_calls, and reports whether it is a call.
func (s *scanner) chatCall(i int, raw Span) bool {
	v := s.object(raw)
	named, custom := v.at("function"), false
	if !s.is(named, '{') {
		named = v.at("custom")
		custom = s.is(named, '{')
	}
	tool := s.object(named)
	if !s.is(raw, '{') || s.isVoidCall(&v, &tool) {
		s.opaque(raw)
		s.loose = true
		return false
	}
	s.strict = s.strict || v.at("custom") != (Span{}) || v.at("extra_content") != (Span{}) ||
		v.at(litellmFields) != (Span{})
	typed := s.equals(v.at("type"), "function") && !s.absent(v.at("function")) ||
		s.equals(v.at("type"), "custom") && s.absent(v.at("function"))
	s.loose = s.loose || !typed
	id := s.callID(v.at("id"), func() string { return fmt.Sprintf("/tool_calls/%d/id", i) })
	s.strict = s.strict || tool.at(litellmFields) != (Span{})
	if b := s.addChatCall(Part{Raw: raw, CallID: id}, &tool, custom); b != nil {
		b.Signature = chatSignature(id, s.value(v.at("extra_content")), s.value(v.at(litellmFields)),
			s.value(tool.at(litellmFields)))
	}
	return true
}

// addChatCall adds a call with the tool's name and its arguments, or the input if it is a custom tool.
func (s *scanner) addChatCall(part Part, tool *object, custom bool) *Block {
	part.Name = s.toolName(tool.at("name"))
	part.Value = tool.at("arguments")
	if input := tool.at("input"); s.absent(part.Value) && (custom || !s.absent(input)) {
		part.Value, custom = input, true
	}
	return s.openAICall(part, tool.at("name"), custom)
}

// chatImage reads image_url, which some clients write as the URL itself.
func (s *scanner) chatImage(raw, at Span) {
	v := s.object(at)
	cost := tokens.TiledImage(s.name(v.at("detail")), s.measureURL(v.at("url")))
	bare := s.is(at, '"')
	s.loose = s.loose || bare
	b := s.media(Image, raw, cost, func() Media {
		m := Media{Detail: s.literal(v.at("detail"))}
		url := v.at("url")
		if bare {
			url = at
		}
		s.readURL(&m, url)
		return m
	})
	if b != nil {
		b.Edited = bare // OpenAI's API takes none: multimodal-interpretability/maia#3
	}
}
