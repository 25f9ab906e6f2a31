package wire

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

func chatCall(members string) string {
	return `{"role":"assistant","content":null,"tool_calls":[{"id":"a",` + members + `}]}`
}

func customChat(d provider.Dialect) fixture {
	return fixture{"V-D8", "a custom tool at " + string(d), asks(d), []string{someUser, `{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"custom","custom":{"name":"patch","input":"x"}}]}`, chatTool("a"), someUser}, []string{"V-D8 1"}}
}

// itemOf returns an item of a type with an id.
func itemOf(kind, id, members string) string {
	return `{"type":"` + kind + `","id":"` + id + `"` + members + `}`
}

const (
	bmp      = `{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AA=="}}`
	pngBlock = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="},"cache_control":{"type":"ephemeral"}}`
	jpg      = `{"type":"image","source":{"type":"base64","media_type":"image/jpg","data":"/9j/4AAQSkZJRg=="},"cache_control":{"type":"ephemeral"}}`
	document = `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}`
	textPart = `{"type":"text","text":"u"}`
	filePart = `{"type":"file","file":{"file_id":"f"}}`
)

func failedResult(content string) string {
	return says("user", `{"type":"tool_result","tool_use_id":"a","is_error":true,"cache_control":{"type":"ephemeral"},"content":[`+content+`]}`)
}

func result(content string) string {
	return says("user", `{"type":"tool_result","tool_use_id":"a","content":[`+content+`]}`)
}

const (
	clientSearch = `{"type":"tool_search_call","call_id":"s","execution":"client","status":"completed","arguments":{"q":"x"}}`
	clientFound  = `{"type":"tool_search_output","call_id":"s","execution":"client","status":"completed","tools":[{"type":"function","name":"f","parameters":{},"strict":false}]}`
)

var boundItem = itemOf("reasoning", "rs_1", `,"summary":[],"encrypted_content":"e"`)

func userParts(parts string) string { return `{"role":"user","content":[` + parts + `]}` }

// wrongIDs are items of which each has an id that belongs to no item of its type.
var wrongIDs = []string{
	itemOf("message", "a_1", `,"role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]`), itemOf("function_call", "a_2", `,"call_id":"a","name":"f","arguments":"{}"`), outputItem("a"),
	itemOf("custom_tool_call", "a_3", `,"call_id":"b","name":"f","input":"x"`), `{"type":"custom_tool_call_output","call_id":"b","output":"r"}`,
	itemOf("web_search_call", "a_4", `,"status":"completed","action":{"type":"search","query":"q"}`), itemOf("file_search_call", "a_5", `,"queries":[],"status":"completed"`), itemOf("computer_call", "a_6", `,"call_id":"c","action":{"type":"wait"},"pending_safety_checks":[],"status":"completed"`),
	`{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"https://a/b.png"}}`,
	itemOf("code_interpreter_call", "a_7", `,"code":"x","container_id":"c","outputs":null,"status":"completed"`), itemOf("image_generation_call", "a_8", `,"result":"AA==","status":"completed"`),
	itemOf("mcp_call", "a_9", `,"name":"f","arguments":"{}","server_label":"s"`), itemOf("mcp_list_tools", "a_10", `,"server_label":"s","tools":[]`), itemOf("reasoning", "a_11", `,"summary":[],"encrypted_content":"e"`), doneItem,
}

var itemFixtures = map[session.Format][]fixture{
	session.OpenAIChat: {
		{"V-C9", "arguments that are no JSON, and none", Options{}, []string{someUser, chatCall(`"type":"function","function":{"name":"f","arguments":"{\"x"}`), chatTool("a"), chatCall(`"type":"function","function":{"name":"f","arguments":""}`), chatTool("a")}, nil},
		{"V-C9", "a free text", Options{}, []string{someUser, chatCall(`"type":"custom","custom":{"name":"f","input":"x"}`), chatTool("a")}, nil},
		{"V-C9", "an object", Options{}, []string{someUser, chatCall(`"type":"function","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"f","arguments":{"x":1}}`), chatTool("a")}, []string{"V-C9 1"}},
		{"V-C9", "a legacy call without arguments", Options{}, []string{someUser, `{"role":"assistant","content":null,"function_call":{"name":"f"}}`, `{"role":"function","name":"f","content":"r"}`}, []string{"V-C9 1"}},
		{"V-C9", "a custom tool's input that is null", Options{}, []string{someUser, chatCall(`"type":"custom","custom":{"name":"f","input":null}`), chatTool("a")}, []string{"V-C9 1"}},
		{"V-D8", "a function", asks(provider.Groq), []string{someUser, chatCalls("a"), chatTool("a"), someUser}, nil},
		{"V-D8", "OpenAI has custom tools", Options{Model: "gpt-5"}, []string{someUser, chatCall(`"type":"custom","custom":{"name":"f","input":"x"}`), chatTool("a")}, nil},
		customChat(provider.DeepSeek), customChat(provider.Qwen),
		{"V-D8", "a custom tool at Groq", asks(provider.Groq), []string{someUser, chatCall(`"type":"custom","custom":{"name":"f","input":"x"}`), chatTool("a"), someUser}, []string{"V-D8 1"}},
		{"V-D8", "a custom tool at Cerebras", asks(provider.Cerebras), []string{someUser, chatCall(`"type":"custom","custom":{"name":"f","input":"x"}`), chatTool("a"), someUser}, []string{"V-D8 1"}},
		{"V-D9", "an image", asks(provider.Groq), []string{userParts(textPart + `,{"type":"image_url","image_url":{"url":"https://a/b.png","detail":"low"}}`)}, nil},
		{"V-D9", "a file for OpenAI", Options{Model: "gpt-5"}, []string{userParts(filePart)}, nil},
		{"V-D9", "a file for Groq", asks(provider.Groq), []string{userParts(textPart + "," + filePart)}, []string{"V-D9 0"}},
		{"V-D9", "a sound and a film for Mistral", mistralAsks, []string{userParts(`{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}},{"type":"video_url","video_url":{"url":"https://a/b.mp4"}}`)}, []string{"V-D9 0", "V-D9 0"}},
		{"V-D9", "a film for OpenAI", Options{Model: "gpt-5"}, []string{userParts(textPart + `,{"type":"video_url","video_url":{"url":"https://a/b.mp4"}}`)}, []string{"V-D9 0"}},
		{"V-D9", "a film where nobody knows the server", Options{}, []string{userParts(textPart + `,{"type":"video_url","video_url":{"url":"https://a/b.mp4"}}`)}, nil},
		{"V-D4", "marks in a block and in an image", mistralAsks, []string{userParts(`{"type":"text","text":"u","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"https://a/b.png","format":"png"},"prompt_cache_breakpoint":{"mode":"explicit"}}`)}, []string{"V-D4 0", "V-D4 0", "V-D4 0"}},
		{"V-D4", "a signature beside a call, and null", asks(provider.Groq), []string{someUser, `{"role":"assistant","content":null,"function_call":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]}`, chatTool("a"), someUser}, []string{"V-D4 1", "V-D4 1"}},
	},
	session.OpenAIResponses: {
		{"V-C9", "texts", Options{}, []string{userItem, callItem("a"), outputItem("a"), `{"type":"custom_tool_call","call_id":"b","name":"f","input":""}`, `{"type":"custom_tool_call_output","call_id":"b","output":"r"}`}, nil},
		{"V-C9", "an action is an object", Options{}, []string{userItem, `{"type":"shell_call","call_id":"a","action":{"commands":["ls"]},"status":"completed"}`, `{"type":"shell_call_output","call_id":"a","output":[]}`}, nil},
		{"V-C9", "an object", Options{}, []string{userItem, `{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":{"x":1}}`, outputItem("a")}, []string{"V-C9 1"}},
		{"V-C9", "no arguments", Options{}, []string{userItem, `{"type":"function_call","call_id":"a","name":"f"}`, outputItem("a")}, []string{"V-C9 1"}},
		{"V-C9", "a free text that is none", Options{}, []string{userItem, `{"type":"custom_tool_call","call_id":"a","name":"f","input":{"x":1}}`, `{"type":"custom_tool_call_output","call_id":"a","output":"r"}`}, []string{"V-C9 1"}},
		{"V-R10", "an approval of a request", Options{}, []string{userItem, itemOf("mcp_approval_request", "mcpr_1", `,"server_label":"s","name":"f","arguments":"{}"`), `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`, doneItem}, nil},
		{"V-R11", "a search and what it found, with a call between", Options{}, []string{userItem, clientSearch, callItem("b"), clientFound, outputItem("b"), doneItem}, nil},
		{"V-R11", "a search of the API's own", Options{}, []string{userItem, itemOf("tool_search_call", "tsc_1", `,"call_id":null,"execution":"server","status":"completed","arguments":{}`), doneItem}, nil},
		{"V-R11", "a search that waits", Options{}, []string{userItem, clientSearch}, nil},
		{"V-R11", "a search that nobody ran", Options{}, []string{userItem, clientSearch, userItem}, []string{"V-R11 1"}},
		{"V-R11", "a search that waits, where nothing may", Options{Pending: SynthesizePending}, []string{userItem, clientSearch}, []string{"V-R11 1"}},
		{"V-R11", "what was found without a search", Options{}, []string{userItem, clientFound, doneItem}, []string{"V-R11 1"}},
		{"V-R11", "what was found twice", Options{}, []string{userItem, clientSearch, clientFound, clientFound, doneItem}, []string{"V-R11 3"}},
		{"V-R10", "an approval without a request", Options{}, []string{userItem, `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`, doneItem}, []string{"V-R10 1"}},
		{"V-R9", "the same provider's", Options{Author: "gpt-5.1", Model: "openai/gpt-5"}, []string{userItem, boundItem, doneItem}, nil},
		{"V-R9", "reasoning that is no secret", Options{Author: "gpt-oss", Model: "groq/gpt-oss"}, []string{userItem, `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}`, doneItem}, nil},
		{"V-R9", "OpenAI's for Azure", Options{Author: "gpt-5", Model: "azure/gpt-5"}, []string{userItem, boundItem, doneItem}, []string{"V-R9 1"}},
		{"V-R9", "OpenAI's for Grok", Options{Author: "openrouter/openai/gpt-5", Model: "grok-4"}, []string{userItem, boundItem, doneItem}, []string{"V-R9 1"}},
		{"V-R8", "ids of many types", Options{}, []string{userItem, itemOf("web_search_call", "ws_1", `,"status":"completed","action":{"type":"search","query":"q"}`), itemOf("reasoning", "rs_1", `,"summary":[],"encrypted_content":"e"`), callItem("a"), itemOf("function_call_output", "fc_1", `,"call_id":"a","output":"r","status":"completed"`), doneItem}, nil},
		{"V-R8", "64 characters", Options{}, []string{userItem, itemOf("message", "msg_"+sixtyFour[4:], `,"role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]`)}, nil},
		{"V-R8", "a reference has the id of another item", Options{}, []string{userItem, doneItem, itemOf("item_reference", "msg_1", "")}, nil},
		{"V-R8", "an item may go without", Options{}, []string{`{"role":"user","content":"u"}`, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`, outputItem("a")}, nil},
		{"V-R8", "ids of other types", Options{}, append([]string{userItem}, wrongIDs...), []string{"V-R8 1", "V-R8 2", "V-R8 4", "V-R8 6", "V-R8 7", "V-R8 8", "V-R8 10", "V-R8 11", "V-R8 12", "V-R8 13", "V-R8 14"}},
		{"V-R8", "one constant for all", Options{}, []string{userItem, doneItem, userItem, strings.Replace(doneItem, "done", "again", 1)}, []string{"V-R8 3"}},
		{"V-R8", "two searches of one id", Options{}, []string{userItem, itemOf("web_search_call", "ws_1", `,"status":"completed","action":{"type":"search","query":"q"}`), itemOf("web_search_call", "ws_1", `,"status":"completed","action":{"type":"search","query":"q"}`), doneItem}, []string{"V-R8 2"}},
		{"V-R8", "65 characters, and others than letters", Options{}, []string{userItem, itemOf("message", "msg_"+sixtyFour[3:], `,"role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]`), itemOf("message", "msg.1", `,"role":"assistant","content":"x"`), itemOf("message", "", `,"role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]`)}, []string{"V-R8 1", "V-R8 2", "V-R8 3"}},
		{"V-R8", "reasoning that is known by an id of another type", Options{}, []string{userItem, itemOf("reasoning", "x_1", `,"summary":[{"type":"summary_text","text":"hm"}]`), doneItem}, []string{"V-R8 1"}},
		{"V-R8", "reasoning that is known by its id, before an item of another", Options{}, []string{userItem, itemOf("reasoning", "rs_1", `,"summary":[]`), itemOf("message", "x_1", `,"role":"assistant","status":"completed","content":[{"type":"output_text","text":"x","annotations":[]}]`)}, []string{"V-R8 2"}},
		{"V-R8", "a search without an id", Options{}, []string{userItem, `{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}`, doneItem}, []string{"V-R8 1"}},
		{"V-R7", "nothing in an array, and an empty text", Options{}, []string{`{"role":"user","content":[]}`, `{"role":"assistant","content":""}`}, nil},
		{"V-R7", "an item that is no message", Options{}, []string{userItem, callItem("a"), outputItem("a")}, nil},
		{"V-R7", "null", Options{}, []string{userItem, `{"type":"message","role":"user","content":null}`, userItem}, []string{"V-R7 1"}},
		{"V-R7", "none, after reasoning", Options{}, []string{userItem, reasonedItem, `{"role":"assistant"}`, userItem}, []string{"V-R7 2"}},
		{"V-R5", "tools of another role", Options{}, []string{userItem, `{"type":"additional_tools","role":"user","tools":[]}`}, []string{"V-R5 1"}},
	},
	session.Gemini: {
		{"V-G4", "null is nothing", Options{}, []string{geminiOf("user", `{"text":"u","inline_data":null,"function_call":null}`)}, nil},
		{"V-G4", "nothing but null", Options{}, []string{geminiOf("user", `{"text":"u"}`, `{"text":null,"function_response":null}`)}, []string{"V-G4 0"}},
	},
	session.Anthropic: {
		{"V-A17", "an object", Options{}, []string{someUser, uses("a"), toolResults("a")}, nil},
		{"V-A17", "the input of a tool that the provider runs", Options{}, []string{someUser, says("assistant", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`, block)}, nil},
		{"V-A17", "a text", Options{}, []string{someUser, says("assistant", `{"type":"tool_use","id":"a","name":"f","input":"ls","cache_control":{"type":"ephemeral"}}`), toolResults("a")}, []string{"V-A17 1"}},
		{"V-A17", "an array, null and none", Options{}, []string{someUser, says("assistant", `{"type":"tool_use","id":"a","name":"f","input":[]}`, `{"type":"tool_use","id":"b","name":"f","input":null}`, `{"type":"tool_use","id":"c","name":"f"}`), toolResults("a", "b", "c")}, []string{"V-A17 1", "V-A17 1", "V-A17 1"}},
		{"V-A18", "the types of images", Options{}, []string{says("user", pngBlock, imageOf("jpeg", "/9j/4AAQSkZJRg=="), imageOf("gif", "R0lGODlh")), uses("a"), result(imageOf("webp", "UklGRiQAAABXRUJQVlA4"))}, nil},
		{"V-A18", "an image elsewhere, a document, and an error in words", Options{}, []string{says("user", `{"type":"image","source":{"type":"url","url":"https://a/b.bmp"}}`, document), uses("a"), failedResult(block)}, nil},
		{"V-A18", "a table", Options{}, []string{says("user", block, `{"type":"document","source":{"type":"base64","media_type":"text/csv","data":"YSxi"}}`)}, []string{"V-A18 0"}},
		{"V-A18", "a bitmap", Options{}, []string{says("user", block, bmp)}, []string{"V-A18 0"}},
		{"V-A18", "a bitmap in a result", Options{}, []string{someUser, uses("a"), result(block + "," + bmp)}, []string{"V-A18 2"}},
		{"V-A18", "image/jpg", Options{}, []string{says("user", jpg), uses("a"), result(jpg)}, []string{"V-A18 0", "V-A18 2"}},
		{"V-A18", "an image and a document of the assistant", Options{}, []string{someUser, says("assistant", block, pngBlock, document), someUser}, []string{"V-A18 1", "V-A18 1"}},
		{"V-A18", "an image in an error", Options{}, []string{someUser, uses("a"), failedResult(block + "," + pngBlock)}, []string{"V-A18 2"}},
		{"V-A18", "a found page in an error", Options{}, []string{someUser, uses("a"), failedResult(`{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}`)}, []string{"V-A18 2"}},
		{"V-A19", "white space in a result", Options{}, []string{someUser, uses("a"), result(`{"type":"text","text":"\n"}`)}, nil},
		{"V-A19", "nothing in a result", Options{}, []string{someUser, uses("a"), result("")}, nil},
		{"V-A19", "an empty text in a result", Options{}, []string{someUser, uses("a"), result(block + `,{"type":"text","text":""}`)}, []string{"V-A19 2"}},
		{"V-A19", "nothing but an empty text", Options{}, []string{someUser, uses("a"), failedResult(`{"type":"text","text":""}`)}, []string{"V-A19 2"}},
		{"V-A13", "a mark on thinking", Options{}, []string{someUser, says("assistant", strings.Replace(signed, "}", `,"cache_control":{"type":"ephemeral"}}`, 1), strings.Replace(redacted, "}", `,"cache_control":{"type":"ephemeral"}}`, 1), block), someUser}, []string{"V-A13 1", "V-A13 1"}},
	},
}

func init() {
	for f, list := range itemFixtures {
		fixtures[f] = append(fixtures[f], list...)
	}
}

func imageOf(kind, data string) string {
	return strings.NewReplacer("png", kind, "iVBORw0KGgo=", data).Replace(pngBlock)
}
