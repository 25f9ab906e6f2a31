package wire

// OpenAI Chat Completions messages, as the types ChatCompletionMessageParam and ChatCompletionContentPart of OpenAI's API
// reference have them (openai-node, resources/chat/completions), with what other servers of that API add.
//
//	role user, assistant, system, developer   User, Assistant, System
//	role tool, function                       Tool: one Result; the id of a function's is "function:" and its name
//	any other role                            Other
//	name                                      Name; of a tool's result its Name
//	content                                   a string one Text, an array a block for each block
//	text, refusal                             Text
//	image_url                                 Image; a data: URL is taken apart
//	file, input_audio                         File
//	refusal                                   Text with Refusal
//	reasoning_content                         Reasoning (DeepSeek, vLLM and others)
//	tool_calls, function_call                 Call; arguments are the object inside their string, and the string itself if
//	                                          it holds no object. One of type custom is Custom
//	any other block                           Opaque
//	any other member                          Extra, which other formats do not get
//
// What other formats say and a message cannot:
//
//	images and files of a result       a message of the user behind the results, and a note in the result
//	a result that is an error          a text that begins with [Error]
//	images and files of the assistant  a note
//	files elsewhere, by their id       a note; an id is good only between the formats of OpenAI
//	an image's name                    a note in front
//	a document that is a text          that text
//	several thoughts                   one reasoning_content; what only the provider can read is a note in it, and proofs
//	                                   of reasoning are lost
//	anything that is Opaque            its JSON as a text

// callWords are the members of a tool call that the model has words for, those of function_call among them.
var callWords = []string{"id", "type", "function", "custom", "name", "arguments"}

// The members of the blocks of a content array.
const (
	chatBlockType = iota
	chatBlockText
	chatBlockRefusal
	chatBlockImage
	chatBlockFile
	chatBlockAudio
	chatBlockMembers
)

var chatBlockNames = []string{"type", "text", "refusal", "image_url", "file", "input_audio"}
