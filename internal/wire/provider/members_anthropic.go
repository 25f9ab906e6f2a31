package provider

// What Anthropic's API takes, as the types Beta…Param of anthropics/anthropic-sdk-typescript (resources/beta/messages)
// have it. It refuses every other member, "Extra inputs are not permitted" (microsoft/autogen#3034,
// anthropics/claude-code#4378), and every other type of block: "Input tag 'x' found using 'type' does not match any of
// the expected tags". What only an answer has is that of the types BetaMessage, BetaCitation… and ParsedMessage.
var (
	anthropicMessage = &Object{
		By: "role", Kinds: map[string]*Object{"system": anthropicSystem},
		Prefix: map[string]*Object{"": anthropicOthers}, Other: anthropicOthers,
	}

	anthropicSystem = object("role content clear_at output_config").
			holds("output_config", object("effort")).holds("content", anthropicBlock)

	anthropicOthers = object("role content").holds("content", anthropicBlock).
			answers("id type model container context_management diagnostics stop_details stop_reason " +
			"stop_sequence usage input_transformations parsed_output")

	anthropicBlock = blocks("text", map[string]*Object{
		"text":                                   anthropicText,
		"thinking":                               object("type thinking signature"),
		"redacted_thinking":                      object("type data"),
		"tool_use":                               object("type id name input cache_control caller toolset_name"),
		"tool_result":                            anthropicResult,
		"image":                                  anthropicImage,
		"document":                               anthropicDocument,
		"search_result":                          anthropicSearchResult,
		"server_tool_use":                        object("type id name input cache_control caller"),
		"web_search_tool_result":                 anthropicServerResult,
		"web_fetch_tool_result":                  anthropicServerResult,
		"code_execution_tool_result":             anthropicRunResult,
		"tool_search_tool_result":                anthropicRunResult,
		"advisor_tool_result":                    anthropicRunResult,
		"mcp_tool_use":                           object("type id name input server_name cache_control"),
		"mcp_tool_result":                        object("type tool_use_id content is_error cache_control"),
		"mcp_tool_listing":                       object("type mcp_server_name tools"),
		"container_upload":                       object("type file_id cache_control"),
		"compaction":                             anthropicCompaction,
		"fallback":                               object("type from to trigger"),
		"tool_addition":                          object("type tool cache_control"),
		"tool_removal":                           object("type tool cache_control"),
		"bash_code_execution_tool_result":        anthropicRunResult,
		"text_editor_code_execution_tool_result": anthropicRunResult,
	})

	anthropicText = object("type text cache_control citations").free("text").holds("citations", anthropicCitation).
			answers("parsed_output parsed")

	anthropicResult = object("type tool_use_id content is_error cache_control toolset_name").
			holds("content", blocks("text", map[string]*Object{
			"text":           anthropicText,
			"image":          anthropicImage,
			"document":       anthropicDocument,
			"search_result":  anthropicSearchResult,
			"tool_reference": object("type tool_name cache_control").whole(),
			"browser_state":  object("type tabs state_changes cache_control").whole(),
		}))

	anthropicImage        = object("type source cache_control transformations").holds("source", anthropicImageSource)
	anthropicDocument     = object("type source title context citations cache_control").holds("source", anthropicSource)
	anthropicSearchResult = object("type source title content citations cache_control").whole().
				holds("content", blocks("text", map[string]*Object{"text": anthropicText}))
	anthropicCompaction   = object("type content cache_control encrypted_content signature tool_changes")
	anthropicServerResult = object("type tool_use_id content cache_control caller")
	anthropicRunResult    = object("type tool_use_id content cache_control")

	// A source of another type is in an Opaque block, which stays as it is: only its members are looked at.
	anthropicSource      = object("type media_type data url file_id content").free("data content")
	anthropicImageSource = object("type media_type data url file_id").free("data")

	// An answer names the file, which a request must not: "citations.0.char_location.file_id: Extra inputs are not
	// permitted" (the types TextCitation and TextCitationParam).
	anthropicCitation = object("type cited_text document_index document_title start_char_index end_char_index " +
		"start_page_number end_page_number start_block_index end_block_index encrypted_index title url " +
		"search_result_index source").answers("file_id")
)
