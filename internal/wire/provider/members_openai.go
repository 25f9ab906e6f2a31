package provider

// What Chat Completions takes, as ChatCompletionMessageParam of openai/openai-node has it. OpenAI's own API ignores
// most members that it does not know (microsoft/agent-framework#2344); Groq, Mistral and others refuse them (property
// 'x' is unsupported: BerriAI/litellm#30835, janhq/jan#8136). They are neither counted nor compacted, so they do not go
// out.
//
// Beyond OpenAI's types, the lists have what compatible servers need to have back: reasoning_content (DeepSeek,
// Moonshot), reasoning (vLLM, Groq, Ollama), reasoning_details (OpenRouter), thinking_blocks (LiteLLM), extra_content
// and provider_specific_fields (LiteLLM) with Google's signatures, cache_control, prefix (Mistral, DeepSeek), partial
// (Qwen, Kimi), tools (Kimi), and blocks of videos, sounds and thinking.
//
// An empty array or null in the place of calls is refused: "Invalid 'messages[1].tool_calls': empty array. Expected an
// array with minimum length 1" (openai/openai-node#1341). Both members of a function_call are required: one without
// either is what is left of a stream.
var (
	chatMessage = object("role content tool_call_id? tool_calls! name? reasoning_content reasoning refusal "+
		"function_call+ audio reasoning_details! thinking_blocks! cache_control? prefix? partial? extra_content? "+
		"tools!").
		holds("content", chatBlock).holds("tool_calls", chatCall).
		holds("function_call", object("name arguments")).
		holds("audio", object("id").answers("data expires_at transcript")).
		system("tools").answers("annotations parsed")

	chatBlock = blocks("text", map[string]*Object{
		"text":    object("type text cache_control? prompt_cache_breakpoint?").free("text"),
		"refusal": object("type refusal").free("refusal"),
		"image_url": withBreakpoint("image_url").free("image_url").
			holds("image_url", object("url detail? format?").free("url")),
		"input_audio": withBreakpoint("input_audio").holds("input_audio", object("data format").free("data")),
		"file": withBreakpoint("file").
			holds("file", object("file_id? file_data? filename? format?").free("file_data")),
		"video_url": withBreakpoint("video_url").whole(),
		"audio_url": withBreakpoint("audio_url").whole(),
		"thinking":  object("type thinking closed? signature?").whole(),
	})

	chatCall = object("id type function? custom? extra_content? provider_specific_fields?").
			holds("function", object("name arguments provider_specific_fields?").answers("parsed_arguments")).
			holds("custom", object("name input")).answers("index")
)

func withBreakpoint(name string) *Object {
	return object("type " + name + " cache_control? prompt_cache_breakpoint?")
}

// What Responses takes, as ResponseInputItem of openai/openai-node has it. It refuses every other member: "Unknown
// parameter: 'input[1].metadata'" (microsoft/agent-framework#2203), and every other type: "Invalid value: 'x'.
// Supported values are: …". Items of answers have null where the types of a request have none, and what only the types
// of ResponseOutputItem have. A custom tool's call has a status in openai/codex, which sends it.
var (
	responsesItem = &Object{By: "type", Kinds: map[string]*Object{
		"message": responsesMessage,
		"function_call": object("type call_id name arguments id? status? namespace? caller async?").
			answers("parsed_arguments"),
		"function_call_output": responsesOutput("output id status caller name namespace"),
		"reasoning": object("type id? summary encrypted_content content? status?").
			free("summary encrypted_content content"),
		"custom_tool_call":        object("type call_id name input id? status? namespace? caller async?"),
		"custom_tool_call_output": responsesOutput("output id? caller name?"),
		"shell_call":              returned("type call_id action id status environment caller"),
		"shell_call_output":       returned("type call_id output id status max_output_length caller").free("output"),
		"local_shell_call":        object("type id call_id action status?"),
		"local_shell_call_output": object("type id call_id? output status").free("output"),
		"apply_patch_call":        returned("type call_id operation status id caller"),
		"apply_patch_call_output": returned("type call_id status output id caller").free("output"),
		"computer_call":           object("type id call_id action? actions? pending_safety_checks status"),
		"computer_call_output":    returned("type call_id output id acknowledged_safety_checks status").free("output"),
		"file_search_call":        object("type id queries status results"),
		"web_search_call":         object("type id status action?").holds("action", searchAction),
		"image_generation_call":   object("type id result status"),
		"code_interpreter_call":   object("type id code container_id outputs status"),
		"mcp_list_tools":          object("type id server_label tools error"),
		"mcp_approval_request":    object("type id name arguments server_label"),
		"mcp_approval_response":   object("type approval_request_id approve id reason"),
		"mcp_call":                responsesMCPCall,
		"item_reference":          object("type id"),
		"compaction":              returned("type encrypted_content id"),
		"compaction_trigger":      object("type id?"),
		"tool_search_call":        returned("type arguments call_id execution? id status"),
		"tool_search_output":      returned("type tools call_id execution? id status"),
		"additional_tools":        responsesTools,
		"configuration_update":    object("type id reasoning? text?"),
		"program":                 object("type id call_id code fingerprint"),
		"program_output":          object("type id call_id result status"),
	}, Other: responsesMessage, Note: `{"type":"message","role":"assistant","content":`, NoteEnd: "}"}

	searchAction = object("type query queries sources url? pattern?")

	responsesTools = &Object{By: "role", Kinds: map[string]*Object{"developer": object("type role tools id")},
		Note: `{"type":"message","role":"assistant","content":`, NoteEnd: "}"}

	responsesMCPCall = object("type id name arguments server_label approval_request_id error output status?")

	responsesMessage = &Object{By: "role", Kinds: map[string]*Object{
		"assistant": object("type role content id? status? phase").
			holds("content", blocks("output_text", map[string]*Object{
				"output_text": object("type text annotations? logprobs?").free("text").answers("parsed"),
				"refusal":     object("type refusal").free("refusal"),
			})),
	}, Prefix: map[string]*Object{
		"": object("type role content id? status?").holds("content", responsesBlock),
	}}

	responsesBlock = blocks("input_text", map[string]*Object{
		"input_text":  object("type text prompt_cache_breakpoint").free("text"),
		"input_image": object("type image_url detail file_id prompt_cache_breakpoint").free("image_url"),
		"input_file": object("type file_data? file_id filename? file_url? detail? prompt_cache_breakpoint").
			free("file_data"),
	})
)

func responsesOutput(names string) *Object {
	return returned("type call_id "+names).holds("output", responsesBlock)
}

// returned returns an item of which an answer says who made it, and, of the output of a custom tool, what became of it.
func returned(names string) *Object { return object(names).answers("created_by status") }
