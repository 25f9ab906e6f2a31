package wire

// OpenAI Responses input items, as the type ResponseInputItem of OpenAI's API reference has them (openai-node,
// resources/responses). An item is one Message.
//
//	message, and an item of a role alone   User, Assistant, System; any other role Other
//	content                                a string one Text, an array a block for each block
//	input_text, output_text, text,
//	summary_text, reasoning_text           Text
//	refusal                                Text with Refusal
//	input_image, computer_screenshot       Image; a data: URL is taken apart
//	input_file, input_audio                File
//	reasoning                              Reasoning of an Assistant: its texts, a line each; encrypted_content is the Signature
//	function_call, custom_tool_call        Call of an Assistant; arguments are the object inside their string, and the string
//	                                       itself if it holds no object. The input of a custom tool is Custom
//	shell_call, local_shell_call,
//	apply_patch_call, computer_call        Call of the tool shell, local_shell, apply_patch, computer: action or operation
//	                                       are the arguments
//	…_call_output                          Result of a Tool: a string one Text, an array of blocks their blocks, any other
//	                                       output its JSON as a text. An apply_patch that failed IsError
//	mcp_approval_response                  Opaque of a User
//	item_reference, compaction, tools that
//	the provider ran, any other item       Opaque of an Assistant, or of the role that it names
//	any other block                        Opaque
//	any other member                       Extra, the id among them; annotations and other members of a block stay in its
//	                                       bytes, which other formats do not get
//
// What other formats say and items cannot, and what is made of it:
//
//	reasoning                          a text of the assistant: the provider refuses reasoning that it has not encrypted
//	a message of the assistant         output_text without an id: ids are never made up
//	images and files of the assistant  a note
//	sounds, and files of other
//	providers by their id              a note
//	an image's name                    a note in front
//	a document that is a text          that text
//	a result that is an error          a text that begins with [Error]
//	a speaker's name                   a note in front
//	anything that is Opaque            its JSON as a text
//
// A call of shell, local_shell, apply_patch or computer that a repair has changed is one of a function of that name, and so
// is its result.
