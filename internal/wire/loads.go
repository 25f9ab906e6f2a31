package wire

import (
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Blocks and items may change which tools the model has from there on: what a search has found, the tools of an MCP
// server, tools that a program adds. Without them calls of these tools are of tools that nobody has loaded
// (openai/codex#34719, QwenLM/qwen-code#8276). Others change how hard it thinks and how much it says: the compaction of
// OpenAI emits the newest configuration_update anew.

// loadedShare is the share of a window, or of the bound of a view, that messages which load tools may have.
const loadedShare = 1.0 / 8

// Loads decides which messages that load tools stay in a view when what is around them leaves: those that load what no
// newer one does, from the newest back, as far as they have no more than their share.
type Loads struct {
	loaded map[string]bool
	room   float64
}

// NewLoads begins with the newest messages of a view that may have this number of tokens.
func NewLoads(tokens float64) *Loads { return &Loads{map[string]bool{}, loadedShare * tokens} }

// IsNew reports whether a message loads something that no newer one does.
func (l *Loads) IsNew(names []string) (isNew bool) {
	for _, name := range names {
		isNew = isNew || !l.loaded[name]
		l.loaded[name] = true
	}
	return isNew
}

// Fits takes room for a message that is new, and reports whether there was enough. If not, no older one stays.
func (l *Loads) Fits(tokens int64) bool {
	l.room -= float64(tokens)
	return l.room >= 0
}

// mayLoad are names that such a block or item has.
var mayLoad = map[session.Format][]string{
	session.Anthropic: {"tool_reference", "mcp_tool_listing", "tool_addition", "tool_removal", "output_config"},
	session.OpenAIResponses: {"tool_search_call", "tool_search_output", "additional_tools", "mcp_list_tools",
		"configuration_update"},
	session.AISDK:      {"tool_reference", foundInUI, "tools"},
	session.OpenAIChat: {"tools"},
}

// LoadedTools returns the names of what a message loads: of tools, of MCP servers, and of the settings that it changes.
// A search of tools that found none loads nothing.
func LoadedTools(f session.Format, body []byte) (names []string) {
	switch {
	case f == session.Anthropic && MayLoad(f, body):
		names = appendSettings(names, body, "output_config")
		for block := range blocksInside(body) {
			names = appendReferences(names, block)
			if content := valueOf(block, "content"); isType(block, "tool_search_tool_result") {
				for reference := range elementsOf(content, "tool_references") {
					names = appendReferences(names, reference)
				}
			}
		}
	case f == session.AISDK && MayLoad(f, body):
		for part := range elementsOf(body, "parts") {
			names = appendFound(names, part, isExecuted(part))
		}
		for part := range elementsOf(body, "content") {
			names = appendFound(names, part, stringMember(body, "role") == "assistant")
		}
	case f == session.OpenAIChat && MayLoad(f, body) && declaresTools(body):
		names = appendTools(names, body)
	case f == session.OpenAIResponses:
		switch stringMember(body, "type") {
		case "tool_search_output", "additional_tools":
			names = appendTools(names, body)
		case "mcp_list_tools":
			names = append(names, "mcp "+stringMember(body, "server_label"))
		case "configuration_update":
			names = appendSettings(names, body, "reasoning")
			names = appendSettings(names, body, "text")
		}
	}
	return names
}

// appendSettings appends the names of the settings in a member of a message.
func appendSettings(names []string, body []byte, in string) []string {
	if settings := valueOf(body, in); startsWith(settings, '{') {
		for name := range rawjson.Members(settings, 0) {
			names = append(names, "setting "+in+" "+string(name.Of(settings)))
		}
	}
	return names
}

// MayLoad reports whether one of several messages may load tools, without a look at their JSON.
func MayLoad(f session.Format, joined []byte) bool {
	return rawjson.HasAny(joined, mayLoad[f])
}

func appendReferences(names []string, block []byte) []string {
	switch stringMember(block, "type") {
	case "tool_reference":
		return append(names, stringMember(block, "tool_name"))
	case "mcp_tool_listing":
		return append(names, "mcp "+stringMember(block, "mcp_server_name"))
	case "tool_addition", "tool_removal":
		return append(names, changedTool(valueOf(block, "tool")))
	}
	return names
}

// isToolChange reports whether a block offers or withdraws a tool from there on: it stands in messages of the system
// between others (platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages).
func isToolChange(block []byte) bool {
	return isType(block, "tool_addition") || isType(block, "tool_removal")
}

// changedTool returns the name of the tool, or of the MCP server, that such a block is about.
func changedTool(tool []byte) string {
	if defined := valueOf(tool, "definition"); defined != nil {
		tool = defined
	}
	name := stringMember(tool, "name")
	if server := stringMember(tool, "server_name") + stringMember(tool, "mcp_server_name"); server != "" {
		return strings.TrimSpace("mcp " + server + " " + name)
	}
	return name
}

// appendFound appends the names of what a search found, as the packages of the AI SDK have it. If the provider executed
// it, Anthropic's is a list of references, OpenAI's an object with tools.
func appendFound(names []string, part []byte, executed bool) []string {
	output := valueOf(part, "output")
	for found := range elementsOf(output, "value") {
		if name := foundTool(found); name != nil && isType(output, "content") {
			names = append(names, string(unquoted(name)))
		}
	}
	if isType(part, "tool-result") {
		output = valueOf(output, "value")
	}
	if !executed {
		return names
	}
	switch {
	case startsWith(output, '['):
		for at := range rawjson.Elements(output, 0) {
			if found := at.Of(output); isType(found, "tool_reference") {
				names = append(names, stringMember(found, "toolName"))
			}
		}
	case startsWith(output, '{'):
		names = appendTools(names, output)
	}
	return names
}

// foundInUI is what the package of Anthropic for the AI SDK calls a tool_reference in the result of a tool, which is a
// part of type custom there (vercel/ai, convert-to-anthropic-prompt.ts).
const foundInUI = "tool-reference"

// foundTool returns the name of the tool that a block of a result loads, as a string literal; nil for any other block.
func foundTool(block []byte) []byte {
	if isType(block, "tool_reference") {
		return stringLiteralAt(block, "tool_name")
	}
	of := valueOf(valueOf(block, "providerOptions"), anthropicOwner)
	if !isType(block, "custom") || !isType(of, foundInUI) {
		return nil
	}
	return stringLiteralAt(of, "toolName")
}

// appendTools appends the names of the tools of an item, and of those in a namespace.
func appendTools(names []string, of []byte) []string {
	for tool := range elementsOf(of, "tools") {
		if member(tool, "tools") != (Span{}) {
			names = appendTools(names, tool)
		} else {
			name := stringMember(tool, "name") + stringMember(valueOf(tool, "function"), "name") +
				stringMember(tool, "server_label")
			names = append(names, stringMember(tool, "type")+" "+name)
		}
	}
	return names
}

// FoundBy returns the id of the search whose output an item of Responses is, "" for one that the API ran itself;
// isFound is false for any other item.
func FoundBy(item []byte) (id string, isFound bool) {
	return searchID(item), isType(item, searchOutput)
}

// IsSearch reports whether an item is the search of this id, or one without an id that the API ran itself.
func IsSearch(item []byte, id string) bool { return isType(item, searchCall) && searchID(item) == id }

// IsThought reports whether an item is reasoning.
func IsThought(item []byte) bool { return isType(item, "reasoning") }
