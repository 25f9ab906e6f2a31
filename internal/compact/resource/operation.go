package resource

import (
	"bytes"
	"strings"
)

// The operations that this package itself asks about; the tables below have all of them.
const (
	viewFile         = "view_file"
	fileRead         = "file_read"
	fileWrite        = "file_write"
	commandExecution = "command_execution"
	other            = "other"
)

// commonTable is the name of our own table of tools; llm-proxy's is the other.
const commonTable = "common"

// OperationOf says what a tool does, by its name: view_file, file_read, file_write, command_execution, search, list_dir,
// test_execution or other. Case, underscores and hyphens do not count. The table llm-proxy is that system's; the table
// common has the tools of many agents besides, and knows a tool of a server (mcp__fs__read_file, fs.read_file) by the
// last part of its name.
func OperationOf(table, tool string) string {
	if table != commonTable {
		return lookUp(llmProxyTools, tool)
	}
	if operation := lookUp(commonTools, tool); operation != other {
		return operation
	}
	return lookUp(commonTools, lastPart(tool))
}

// OperationOfCall does what OperationOf does, for one call: some tools do what an argument says.
func OperationOfCall(table, tool string, arguments []byte) string {
	operation := OperationOf(table, tool)
	switch {
	case !ArgumentsTell(table, tool):
		return operation
	case operation == other:
		return editorOperation(arguments)
	case bytes.Contains(arguments, []byte(beginPatch)):
		return fileWrite
	}
	return operation
}

// ArgumentsTell reports whether calls of a tool may do different things: editors whose argument `command` says what, and
// shells, through which a patch may come.
func ArgumentsTell(table, tool string) bool {
	return table == commonTable &&
		(editors[fold(tool)] || editors[fold(lastPart(tool))] || OperationOf(table, tool) == commandExecution)
}

// editorOperation reads what an editor with many commands is told to do.
func editorOperation(arguments []byte) string {
	object, ok := parse(arguments)
	if !ok {
		return other
	}
	switch command, _ := object.text("command"); command {
	case "":
		return other
	case "view", "read":
		return viewFile
	default:
		return fileWrite
	}
}

func lookUp(tools map[string]string, tool string) string {
	if operation, ok := tools[fold(tool)]; ok {
		return operation
	}
	return other
}

// fold drops what spellings of one tool's name differ in.
func fold(tool string) string { return folding.Replace(strings.ToLower(tool)) }

var folding = strings.NewReplacer("_", "", "-", "")

// lastPart returns the tool's name without the server that has it.
func lastPart(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+len("__"):]
	}
	return tool[strings.LastIndexAny(tool, ".:/")+1:]
}

func tableOf(lists ...map[string]string) map[string]string {
	tools := map[string]string{}
	for _, list := range lists {
		for operation, names := range list {
			for name := range strings.FieldsSeq(names) {
				tools[fold(name)] = operation
			}
		}
	}
	return tools
}

var (
	llmProxyTools = tableOf(documented)
	commonTools   = tableOf(documented, ours)
)

// documented is the table of llm-interactive-proxy. Its list_dir is called list_directory in that system's manual.
var documented = map[string]string{
	viewFile:         "view_file view_file_outline",
	fileRead:         "read_file cat read get_file_contents file_read view_code_item search_in_file",
	fileWrite:        "write_file write_to_file replace_file_content multi_replace_file_content apply_diff apply_patch edit_file create_file",
	commandExecution: "run_command execute_command bash shell terminal command_status send_command_input",
	"search":         "grep_search codebase_search find_by_name search ripgrep find",
	"list_dir":       "list_dir ls directory list_directory",
	"test_execution": "run_pytest run_tests test pytest unittest jest mocha npm_test",
}

// ours are the tools of Claude Code, Codex, Gemini CLI, pi, Cline, Roo, OpenHands, Cursor, Copilot, Windsurf, opencode and
// the reference MCP servers that the other table lacks. What agents of all kinds call alike and mean differently
// (create, list, run, open) is not here.
var ours = map[string]string{
	viewFile: "view open_file notebook_read read_notebook view_source",
	fileRead: "read_many_files read_multiple_files read_files read_text_file read_media_file fs_read get_file file_contents load_file",
	fileWrite: "write edit multi_edit multi_edit_file notebook_edit edit_notebook edit_notebook_file replace replace_in_file " +
		"replace_string_in_file multi_replace_string_in_file insert_edit_into_file search_and_replace search_replace str_replace insert_content " +
		"write_file_content write_text_file edit_block fs_write file_write file_edit create_new_file save_file update_file append_to_file append_file " +
		"overwrite_file delete_file remove_file move_file rename_file undo_edit patch apply_edit",
	commandExecution: "exec exec_command shell_command local_shell local_shell_call container_exec execute_bash run_bash bash_output " +
		"run_shell_command run_shell execute run_terminal_cmd run_terminal_command run_in_terminal get_terminal_output execute_bash_command " +
		"execute_shell_command write_stdin powershell pwsh zsh execute_ipython_cell ipython start_process interact_with_process read_process_output",
	"search": "grep glob rg search_files search_file_content search_file file_search find_files find_file search_code code_search " +
		"semantic_search search_codebase grep_files glob_file_search search_directory search_dir web_search google_web_search search_web",
	"list_dir":       "list_files list_file directory_tree list_directory_with_sizes tree get_directory_tree read_directory",
	"test_execution": "run_test go_test cargo_test vitest rspec phpunit test_project run_unit_tests",
}

// editors are the tools whose argument `command` says what they do.
var editors = map[string]bool{
	"strreplaceeditor": true, "strreplacebasededittool": true, "strreplacebasededit": true, "texteditor": true, "fileeditor": true, "editor": true,
}
