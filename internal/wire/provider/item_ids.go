package provider

// ItemID is what the Responses API wants of the id of an item.
type ItemID struct {
	Prefix   string // how it begins; "" if that is not known
	Required bool   // an item of the type has one: the type ResponseInputItem of openai/openai-node
}

// MaxItemID is how long an id is at most: "Invalid 'input[101].id': string too long. Expected a string with maximum
// length 64" (NousResearch/hermes-agent#33306). It has letters, digits, _ and - (ranxianglei/billion-context#1052).
const MaxItemID = 64

// itemIDs have the types of items whose ids are checked for more than that: "Invalid 'input[2].id': 'lc_…'. Expected an
// ID that begins with 'msg'" (langchain-ai/langchain#39116, Wei-Shaw/sub2api#3981). Codex sends messages, calls of
// functions and custom tools, and reasoning without ids.
var itemIDs = map[string]ItemID{
	"message":               {Prefix: "msg"},
	"function_call":         {Prefix: "fc"},
	"reasoning":             {Prefix: "rs"},
	"custom_tool_call":      {Prefix: "ctc"},
	"web_search_call":       {Prefix: "ws", Required: true},
	"file_search_call":      {Prefix: "fs", Required: true},
	"computer_call":         {Prefix: "cu", Required: true},
	"code_interpreter_call": {Prefix: "ci", Required: true},
	"image_generation_call": {Prefix: "ig", Required: true},
	"mcp_call":              {Prefix: "mcp", Required: true},
	"mcp_list_tools":        {Prefix: "mcpl", Required: true},
	"mcp_approval_request":  {Required: true},
	"local_shell_call":      {Required: true},
	"program":               {Required: true},
	"program_output":        {Required: true},
}

// ItemIDOf returns what the API wants of the id of an item. known is false for one whose id is another item's: a
// reference, or the output of a local shell, whose id is that of its call.
func ItemIDOf(kind string) (want ItemID, known bool) {
	if kind == "item_reference" || kind == "local_shell_call_output" {
		return ItemID{}, false
	}
	return itemIDs[kind], true
}

// ItemIDPrefixes returns how ids begin, each prefix once.
func ItemIDPrefixes() (prefixes []string) {
	for _, want := range itemIDs {
		if want.Prefix != "" {
			prefixes = append(prefixes, want.Prefix)
		}
	}
	return prefixes
}
