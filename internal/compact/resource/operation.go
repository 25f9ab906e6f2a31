package resource

import (
	"bytes"
	"cmp"
	_ "embed"
	"iter"
	"slices"
	"strings"
)

// The operations that this package uses; tools.txt has all of them.
const (
	viewFile         = "view_file"
	fileRead         = "file_read"
	fileWrite        = "file_write"
	commandExecution = "command_execution"
	other            = "other"

	editor = "editor" // in tools.txt: the argument "command" is the operation
)

// commonTable is the name of Varve's own table of tools; the other is llm-proxy's.
const commonTable = "common"

// OperationOf returns the operation of a tool by its name: view_file, file_read, file_write, command_execution, search,
// list_dir, test_execution or other. Case, underscores and hyphens do not count. The table llm-proxy is that system's;
// the table common also has the tools of many agents, and finds a tool of a server (mcp__fs__read_file, fs.read_file)
// by the last part of its name.
func OperationOf(table, tool string) string {
	if operation := lookUp(table, tool); operation != editor {
		return operation
	}
	return other
}

// OperationOfCall returns the operation of one call: for some tools an argument decides.
func OperationOfCall(table, tool string, arguments []byte) string {
	operation := lookUp(table, tool)
	switch {
	case operation == editor:
		return editorOperation(arguments)
	case ArgumentsTell(table, tool) && bytes.Contains(arguments, []byte(beginPatch)):
		return fileWrite
	}
	return operation
}

// ArgumentsTell reports whether the arguments decide what a call does: for editors with an argument "command", and for
// shells, which may receive a patch.
func ArgumentsTell(table, tool string) bool {
	operation := lookUp(table, tool)
	return operation == editor || operation == commandExecution && table == commonTable
}

// editorOperation returns the operation of a call of an editor with many commands.
func editorOperation(arguments []byte) string {
	object, ok := parse(arguments)
	if !ok {
		return other
	}
	switch command, _ := object.textAt(object.members()["command"]); command {
	case "":
		return other
	case "view", "read":
		return viewFile
	default:
		return fileWrite
	}
}

// lookUp returns what a table has for a tool.
func lookUp(table, tool string) string {
	if table != commonTable {
		return cmp.Or(llmProxyTools[fold(tool)], other)
	}
	return cmp.Or(commonTools[fold(tool)], commonTools[fold(lastPart(tool))], other)
}

// fold returns a tool's name without the differences of its spellings.
func fold(tool string) string { return folding.Replace(strings.ToLower(tool)) }

var folding = strings.NewReplacer("_", "", "-", "")

// lastPart returns the tool's name without that of its server.
func lastPart(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+len("__"):]
	}
	return tool[strings.LastIndexAny(tool, ".:/")+1:]
}

//go:embed tools.txt
var toolsText string

var (
	llmProxyTools = toolsOf("llm-proxy")
	commonTools   = toolsOf("llm-proxy", commonTable)
)

// toolsOf returns the operations of the tools in some lists of tools.txt.
func toolsOf(lists ...string) map[string]string {
	tools := map[string]string{}
	for row := range rows(toolsText) {
		if slices.Contains(lists, row[0]) {
			for _, name := range row[2:] {
				tools[fold(name)] = row[1]
			}
		}
	}
	return tools
}

// argumentsOf returns the names of the arguments with a meaning in tools.txt.
func argumentsOf(meaning string) (names []string) {
	for row := range rows(toolsText) {
		if row[0] == "argument" && row[1] == meaning {
			names = append(names, row[2:]...)
		}
	}
	return names
}

// rows yields the words of each line of an embedded table that is neither empty nor a comment.
func rows(table string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(table) {
			words := strings.Fields(line)
			if len(words) > 0 && words[0] != "#" && !yield(words) {
				return
			}
		}
	}
}
