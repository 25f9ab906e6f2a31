package conformance

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// otherCases changes what a vector asks about apart from messages: lists of cases, and what a model answers.
func otherCases(r *rand.Rand, v vector) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	switch v.System + "/" + v.Op {
	case "falai/validateOptions":
		config := section(v.Input["config"])
		config[pick("compactionThreshold", "preserveRecentCount", "maxToolResultChars")] =
			[]any{0.5, 0.95, 0.49, 0.951, 1.0, 2.0, 3.0, 0.0, -1.0, 5000.0, nil, "0.8", true}[r.IntN(13)]
	case "llm-proxy/categorize":
		for i := range 12 {
			v.Input["tools"].([]any)[i] = pick("view_file", "VIEW-FILE-OUTLINE", "cat", "get_file_contents", "write_to_file", "apply_diff", "createfile",
				"execute_command", "Terminal", "send-command_input", "codebase_search", "ripgrep", "find", "ls", "directory", "list_files", "pytest",
				"npm_test", "jest", "mcp__fs__read_file", "open_file", "glob", "Edit")
		}
	case "llm-proxy/redact":
		for i := range 6 {
			v.Input["texts"].([]any)[i] = pick("/a/sk-", "x ak-sk", "sk_", "Bearer ", "/home/u/ak-proj", "tok ") +
				pick("abcdefghijklmnop", "abcdefghijklmno", "ABC_def-GHI_jkl-MNO", "short") + pick("", "/f.py", " and more")
		}
	case "llm-proxy/extractIdentity":
		for _, c := range objects(v.Input["cases"]) {
			arguments := section(c["arguments"])
			if arguments == nil || r.IntN(2) == 0 {
				continue
			}
			c["tool_name"] = pick("read_file", "view_file", "grep_search", "list_dir", "x", "Bash")
			arguments[pick("file_path", "path", "TargetFile", "directory", "dir", "Cwd", "command", "cmd", "query", "pattern", "SearchPath")] =
				pick("/a/b/", " c ", `D:\x\Y.py`, "git status", "/usr/bin/python3 -m x", "tool.EXE --v", "..", "é 日本", "")
			arguments[pick("offset", "limit", "start_line", "end_line", "count")] = []any{1.0, "7", " 8 ", 2.5, false, nil, "x"}[r.IntN(7)]
		}
	case "cortex/computeAction":
		var offsets []any
		for range 8 {
			offsets = append(offsets, float64(r.IntN(600)))
		}
		slices.SortFunc(offsets, func(a, b any) int { return int(number(a) - number(b)) })
		v.Input["offsets"] = slices.Compact(offsets)
	case "codelia/shouldCompact":
		for _, usage := range objects(v.Input["usages"]) {
			if usage != nil {
				usage["total_tokens"] = float64(r.IntN(1200))
			}
		}
		for _, m := range objects(v.Input["registry"]) {
			m["contextWindow"] = float64(50 + r.IntN(1500))
		}
		if v.Input["config"] == nil {
			v.Input["config"] = object{}
		}
		section(v.Input["config"])["thresholdRatio"] = []any{0.5, 0.8, 0.85, 0.7, 0.33}[r.IntN(5)]
	}
	for _, response := range objects(section(v.Input["llm"])["responses"]) {
		if v.Input["rounds"] == nil { // later rounds would be of other sizes
			otherAnswer(r, response, pick)
		}
	}
}

// otherAnswer changes a model's answer: its words, its tags, or that it fails.
func otherAnswer(r *rand.Rand, response object, pick func(...string) string) {
	if _, ok := response["message"].(string); ok {
		response["message"] = pick("The port is 5433.", "[Conversation Summary]\nAgain.", "I cannot continue without the key, so I stop.",
			"<summary>in tags</summary>", "短い要約。", " spaces ")
	}
	if _, ok := response["text"].(string); ok {
		response["text"] = pick("<retain>Port 5433.</retain><summary>Set up.</summary>", "<summary>only</summary>", "<retain>only facts</retain>",
			"no tags at all", "<RETAIN>a</RETAIN>\n<Summary>\n b \n</Summary> after", "<summary>open", "before <summary>短い。</summary>",
			"<retain>x</retain> rest", "<summary></summary><retain>y</retain>")
	}
	if r.IntN(6) == 0 {
		delete(response, "text")
		delete(response, "message")
		response["error"] = "overloaded"
	}
}

// otherSettings are what a configuration may say, by system: settings with values, of which $tool and $field are names
// that the vector has.
var otherSettings = map[string]map[string][]any{
	"tool-compaction": {
		"inputTrimBytes": {0.0, 1.0, 9.0, 50.0, 1000.0, "100"}, "outputTrimBytes": {0.0, 1.0, 9.0, 50.0, 1000.0, nil},
		"excludedTools": {[]any{"$tool"}, []any{}}, "toolIdentifierFields": {object{"$tool": []any{"$field"}}, object{"$tool": []any{}}, object{}},
	},
	"cortex": {
		"trimFloorRatio": {0.0, 0.1, 0.9}, "hotZoneMinTokens": {0.0, 1.0, 50.0, 400.0}, "hotZoneRatio": {0.0, 0.01, 0.33},
		"bookendMaxChars": {10.0, 33.0, 500.0}, "bookendMinChars": {0.0, 3.0, 64.0}, "degradationSpanRatio": {0.0, 0.05, 0.7, 2.0},
		"extendedRetentionMultiplier": {0.0, 0.5, 1.0, 3.0},
		"toolCategories":              {object{"$tool": "ephemeral"}, object{"$tool": "computational"}, object{"$tool": "rereadable"}, object{"$tool": "non-reproducible"}},
	},
	"falai": {
		"maxTokens": {10.0, 40.0, 100.0, 1000.0}, "compactionThreshold": {0.5, 0.75, 0.95}, "preserveRecentCount": {2.0, 3.0, 5.0},
		"maxToolResultChars": {1.0, 7.0, 40.0, 100.0},
	},
	"llm-proxy": {
		"redact_resource_identifiers": {true, false}, "preserve_last_n_results": {2.0, 3.0}, "stub_template": {"[gone: {resource}, {size}]"},
		"min_tool_output_tokens_to_compact": {0.0, 1.0, 50.0, 250.0},
		"allowed_tool_categories":           {[]any{"file_read"}, []any{"file_read", "search", "other"}, []any{"command_execution"}},
		"denied_tool_categories":            {[]any{"file_read"}, []any{"other", "view_file"}, []any{"command_execution", "file_write"}},
	},
	"codelia": {
		"enabled": {true, false}, "maxMessageBytes": {1.0, 20.0, 100.0, 1000.0}, "contextBudgetTokens": {0.0, 1.0, 20.0, 200.0, nil},
		"retainLastTurns": {0.0, 1.0, 2.0, 3.0}, "retainPrompt": {nil, "What is fixed."}, "retainDirectives": {[]any{"ports"}},
		"summaryPrompt": {"In short."}, "summaryDirectives": {[]any{"one", "two"}},
	},
}

// otherSetting sets a setting, whether the vector has it or not.
func otherSetting(r *rand.Rand, v vector) {
	names := slices.Sorted(maps.Keys(otherSettings[v.System]))
	if _, isObject := v.Input["config"].(object); !isObject && v.Input["config"] != nil || len(conversations(v)) == 0 || v.Input["rounds"] != nil {
		return
	}
	tool, field := "Read", "path"
	for _, p := range conversations(v) {
		for _, m := range objects(p.get()) {
			for _, at := range places(m, func(name string, value any) bool {
				return slices.Contains([]string{"name", "toolName", "tool_name"}, name) && text(value) != ""
			}) {
				tool = text(at.get())
			}
			for _, c := range objects(m["toolCalls"]) {
				for _, name := range slices.Sorted(maps.Keys(section(c["arguments"]))) {
					field = name
				}
			}
		}
	}
	name := names[r.IntN(len(names))]
	values := otherSettings[v.System][name]
	value := jsonText(values[r.IntN(len(values))])
	var set any
	decode([]byte(strings.NewReplacer(`"$tool"`, jsonText(tool), `"$field"`, jsonText(field)).Replace(value)), &set)
	if v.Input["config"] == nil {
		v.Input["config"] = object{}
	}
	section(v.Input["config"])[name] = set
}
