package resource

import "testing"

func TestToolsOfManyAgentsAreKnown(t *testing.T) {
	t.Parallel()
	for operation, tools := range map[string][]string{
		"view_file":         {"view_file", "NotebookRead", "view"},
		"file_read":         {"Read", "read", "read_many_files", "mcp__filesystem__read_text_file", "fs.read_file", "readFile", "cat"},
		"file_write":        {"Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "replace", "write_to_file", "replace_in_file", "edit_file"},
		"command_execution": {"Bash", "shell", "exec_command", "run_shell_command", "execute_bash", "run_terminal_cmd", "container.exec", "developer__shell"},
		"search":            {"Grep", "Glob", "search_file_content", "codebase_search", "search_files", "find", "WebSearch"},
		"list_dir":          {"LS", "ls", "list_directory", "list_files"},
		"test_execution":    {"pytest", "npm-test"},
		"other":             {"", "TodoWrite", "mcp__github__create_issue", "str_replace_editor", "__", "x."},
	} {
		for _, tool := range tools {
			if got := OperationOf("common", tool); got != operation {
				t.Errorf("OperationOf(common, %q) = %s, want %s", tool, got, operation)
			}
		}
	}
}

func TestTheTableOfLLMProxyIsExact(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{
		"View-File_Outline": "view_file", "searchInFile": "file_read", "grep": "other", "glob": "other", "Edit": "other",
		"mcp__fs__read_file": "other", "list_directory": "list_dir", "str_replace_editor": "other",
	} {
		if got := OperationOf("llm-proxy", tool); got != want {
			t.Errorf("OperationOf(llm-proxy, %q) = %s, want %s", tool, got, want)
		}
	}
}

func TestTheOperationOfSomeToolsIsInTheirArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ table, tool, arguments, want string }{
		{"common", "str_replace_editor", `{"command":"view","path":"a"}`, "view_file"},
		{"common", "str_replace_based_edit_tool", `{"command":"str_replace","path":"a"}`, "file_write"},
		{"common", "developer__text_editor", `{"command":"create"}`, "file_write"},
		{"common", "str_replace_editor", `{"path":"a"}`, "other"},
		{"common", "str_replace_editor", `no JSON`, "other"},
		{"common", "shell", `{"command":["bash","-lc","apply_patch <<'EOF'\n*** Begin Patch\n"]}`, "file_write"},
		{"common", "shell", `{"command":"ls"}`, "command_execution"},
		{"common", "Read", `{"file_path":"*** Begin Patch"}`, "file_read"},
		{"llm-proxy", "str_replace_editor", `{"command":"view"}`, "other"},
		{"llm-proxy", "bash", `{"command":"*** Begin Patch"}`, "command_execution"},
	} {
		if got := OperationOfCall(c.table, c.tool, []byte(c.arguments)); got != c.want {
			t.Errorf("OperationOfCall(%s, %s, %s) = %s, want %s", c.table, c.tool, c.arguments, got, c.want)
		}
	}
}
