package wire

// OpenAI Chat Completions messages, as the types ChatCompletionMessageParam and ChatCompletionContentPart of OpenAI's API
// reference have them (openai-node, resources/chat/completions), with what other servers of that API add.
//
//	role user, assistant, system, developer   User, Assistant, System
//	role tool, function                       Tool: one Result; the id of a function's is "function:" and its name
//	any other role                            Other
//	name                                      Name; of a tool's result its Name
//	content                                   a string one Text, an array a piece for each block
//	text, refusal                             Text
//	image_url                                 Image; a data: URL is taken apart
//	file, input_audio                         File
//	refusal                                   Text with Refusal
//	reasoning_content                         Reasoning (DeepSeek, vLLM and others)
//	tool_calls, function_call                 Call; arguments are the object inside their string, and the string itself if
//	                                          it holds no object. One of type custom is Custom
//	any other block                           Opaque
//	any other member                          Extra
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

// The members of a tool call, and of what it calls.
const (
	chatCallID = iota
	chatCallFunction
	chatCallCustom
	chatCallType
	chatCallMembers
)

var chatCallNames = append(callNames[:len(callNames):len(callNames)], "type")

// The blocks of a content array.
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

// isLegacy reports whether a call is written as function_call, which has no id and so goes by the function's name.
func isLegacy(p *Piece) bool {
	return p.Raw != nil && p.CallID == functionPrefix+string(unquotedName(p.Name)) && member(p.Raw, "function") == (Span{})
}

// unquotedName is the text of a name, nothing for none.
func unquotedName(literal []byte) []byte {
	if literal == nil {
		return nil
	}
	return unquoted(literal)
}
