package importer

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// tell returns the format of the messages in a value, "" if it holds none, and whether it fits no other format.
// Messages that fit several are taken for OpenAI Chat.
func tell(s sample) (format session.Format, sure bool) {
	if s.object == nil {
		return tellList(s.messages)
	}
	request, response := sides(s.object)
	switch {
	case parseArray(request["contents"]) != nil:
		return session.Gemini, true
	case !request.has("type") && (parseArray(request["input"]) != nil || isString(request["input"])):
		return session.OpenAIResponses, true
	case request.has("messages"):
		list := parseArray(request["messages"])
		format, sure = tellList(list)
		switch {
		case format == "" && len(list) > 0:
			return "", false
		case list != nil && request.has("system") && format != session.AISDK:
			return session.Anthropic, true
		case sure:
			return format, true
		}
	}
	if found := formatOfReply(response); found != "" {
		return found, true
	}
	return format, false
}

// formatOfReply returns a response's format, "" if the value is no response.
func formatOfReply(response object) session.Format {
	switch {
	case anthropicReply(response) != nil && signal(response) != session.OpenAIResponses:
		return session.Anthropic
	case chatReply(response) != nil:
		return session.OpenAIChat
	case geminiReply(response) != nil:
		return session.Gemini
	case response.text("object") == "response" && responsesReply(response) != nil:
		return session.OpenAIResponses
	}
	return ""
}

// tellList tells the formats apart by the first thing that only one of them has. A system message fits several, but is
// OpenAI's if nothing else decides.
func tellList(messages [][]byte) (format session.Format, sure bool) {
	for _, raw := range messages {
		o := parseObject(raw)
		if foreign(o) {
			return "", false
		}
		if found := signal(o); found != "" {
			return found, true
		}
		switch o.text("role") {
		case "":
			continue
		case "system", "developer":
			sure = true
		}
		format = session.OpenAIChat
	}
	return format, sure
}

// foreign reports whether an element is surely no message of these formats: Bedrock's blocks have no type, and those of
// the AI SDK's model messages have types of their own.
func foreign(o object) bool { return misfit("", o) != "" }

// partMembers are the members of which a part of Gemini has one, as its API and its SDKs spell them
// (https://ai.google.dev/api/caching#Part).
var partMembers = set(
	"text", "thought", "thoughtSignature", "thought_signature", "inlineData", "inline_data", "fileData", "file_data",
	"functionCall", "function_call", "functionResponse", "function_response", "executableCode", "executable_code",
	"codeExecutionResult", "code_execution_result", "toolCall", "tool_call", "toolResponse", "tool_response",
)

func isGeminiPart(raw []byte) bool {
	for name := range parseObject(raw) {
		if partMembers[name] {
			return true
		}
	}
	return string(raw) == "{}"
}

// Looks returns the format that a message surely is of, "" for one that fits several, or none.
func Looks(message []byte) session.Format {
	o := parseObject(message)
	isModels := marked("type=tool-call|tool-result toolCallId", "type=image image", "type=file mediaType !file",
		"type=reasoning text", "type=tool-approval-request|tool-approval-response approvalId")
	for block := range objects(o["content"]) {
		if isModels(sample{members: block}) {
			return session.AISDK
		}
	}
	switch {
	case parseArray(o["toolInvocations"]) != nil, parseArray(o["experimental_attachments"]) != nil:
		return session.AISDK
	case foreign(o):
		return ""
	case o.text("role") == "model":
		return session.Gemini
	}
	return signal(o)
}

// signal returns the format that a message must have, "" if it fits several.
func signal(o object) session.Format {
	role := o.text("role")
	switch {
	case o.has("parts.0.type") && role != "model":
		return session.AISDK
	case o.has("parts.0"), o.has("parts") && role == "model":
		return session.Gemini
	case o.has("parts"):
		return ""
	case role == "" && responsesItems[o.text("type")]:
		return session.OpenAIResponses
	case role == "tool", role == "function",
		o.first("tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content") != nil,
		o.has("reasoning_details"):
		return session.OpenAIChat
	}
	for block := range objects(o["content"]) {
		if block.fits("type=thinking thinking[]") { // Mistral's
			return session.OpenAIChat
		}
		if found := blockFormats[block.text("type")]; found != "" {
			return found
		}
	}
	return ""
}

// responsesItems are the types of Responses items that have no role.
var responsesItems = set(
	"function_call", "function_call_output", "reasoning", "item_reference", "compaction", "custom_tool_call",
	"custom_tool_call_output", "web_search_call", "file_search_call", "computer_call", "computer_call_output",
	"code_interpreter_call", "image_generation_call", "local_shell_call", "local_shell_call_output", "shell_call",
	"shell_call_output", "apply_patch_call", "apply_patch_call_output", "mcp_list_tools", "mcp_call",
	"mcp_approval_request", "mcp_approval_response", "tool_search_call", "tool_search_output", "additional_tools",
	"compaction_summary", "configuration_update", "program", "program_output",
)

// blockFormats are the types of content blocks that only one format has.
var blockFormats = byFormat(map[session.Format]string{
	session.OpenAIChat: "image_url input_audio file refusal",
	session.Anthropic: "tool_use tool_result thinking redacted_thinking image document server_tool_use " +
		"mcp_tool_use mcp_tool_listing container_upload compaction search_result",
	session.OpenAIResponses: "input_text output_text input_image input_file",
})

// byFormat returns the format of each word in the lists of the formats.
func byFormat(lists map[session.Format]string) map[string]session.Format {
	formats := map[string]session.Format{}
	for format, words := range lists {
		for word := range strings.FieldsSeq(words) {
			formats[word] = format
		}
	}
	return formats
}
