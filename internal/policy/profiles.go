package policy

import (
	"fmt"
	"slices"
	"strings"
)

// profiles are the complete policies that have a name, in the order in which documentation lists them: our default, and
// one for each of the systems that Varve unites, with that system's documented numbers and wording. What a system has
// no number for is the default's. docs/compatibility.md says where Varve differs on purpose.
var profiles = []struct {
	name  string
	build func() Policy
}{
	{"default", Default},
	{"tool-compaction", toolCompactionProfile},
	{"cortex", cortexProfile},
	{"falai", falaiProfile},
	{"llm-proxy", llmProxyProfile},
	{"codelia", codeliaProfile},
}

// Profiles lists the names of all profiles.
func Profiles() []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.name
	}
	return names
}

// Profile returns the named policy; the error lists the names there are.
func Profile(name string) (Policy, error) {
	i := slices.Index(Profiles(), name)
	if i < 0 {
		return Policy{}, fmt.Errorf("there is no profile %q; there are %s", name, strings.Join(Profiles(), ", "))
	}
	return profiles[i].build(), nil
}

// profileOrDefault returns the named policy, or the default one if there is none of that name.
func profileOrDefault(name string) Policy {
	p, err := Profile(name)
	if err != nil {
		return Default()
	}
	return p
}

// Default returns the policy of a tenant that has none.
func Default() Policy {
	return Policy{
		Profile:   "default",
		Trigger:   0.8,
		Target:    0.5,
		Hard:      0.95,
		Economy:   Economy{CacheRead: 0.1, CacheWrite: 1.25, TTLSeconds: 300, Horizon: 20},
		Tokens:    Tokens{Tokenizer: Estimate, Calibrate: true},
		Tools:     Tools{Table: CommonTools, Operations: map[string]Operation{}},
		Protect:   Protect{LastUnits: 4, NewestUser: true, Tools: []string{}, MaxTurnRatio: 1.0 / 3},
		Cap:       Cap{Enabled: true, MaxTokens: 25_000, HeadChars: 8_000, TailChars: 8_000},
		Dedupe:    defaultDedupe(),
		Stale:     Stale{Enabled: true, MinTokens: 100},
		Arguments: Arguments{Enabled: true, MinBytes: 1_000, AfterTokens: 16_000, Operations: []Operation{FileWrite}, Tools: []string{}},
		Trim: Trim{
			Enabled:                     true,
			MinTokens:                   100,
			FloorRatio:                  0.25,
			HotZoneMinTokens:            16_000,
			HotZoneRatio:                0.05,
			BookendMaxChars:             2_000,
			BookendMinChars:             256,
			DegradationSpanRatio:        0.40,
			ExtendedRetentionMultiplier: 1,
			Categories:                  defaultCategories(),
		},
		Budget:     Budget{Ratio: 0.25, Min: 20_000, Max: 60_000},
		Whitespace: Whitespace{MinTokens: 100},
		Summarise: Summarise{
			Enabled: true, Writer: Extract, KeepTurns: 1, KeepMessages: 4, MinTokens: 2_000, MaxTokens: 2_000,
			Directives: []string{}, Retain: true, RetainDirectives: []string{},
		},
		Truncate: Truncate{Enabled: true},
		Wording:  defaultWording(),
	}
}

func defaultDedupe() Dedupe {
	return Dedupe{
		Enabled: true, Identity: ByArguments, Fields: map[string][]string{}, KeepLast: 1, MinTokens: 100, AllowTools: []string{}, DenyTools: []string{},
		AllowOperations: []Operation{}, DenyOperations: []Operation{}, ArgumentBytes: 1_000, Redact: true,
	}
}

// alone returns the default with all stages switched off.
func alone(name string) Policy {
	p := Default()
	p.Profile = name
	p.Cap.Enabled, p.Dedupe.Enabled, p.Stale.Enabled, p.Arguments.Enabled = false, false, false, false
	p.Trim.Enabled, p.Summarise.Enabled, p.Truncate.Enabled = false, false, false
	return p
}

// toolCompactionProfile keeps the newest call and result of each group and omits the large fields of the older ones.
func toolCompactionProfile() Policy {
	p := alone("tool-compaction")
	p.Target = 0.01 // it has no target: whatever is superseded goes
	p.Protect = Protect{Tools: []string{}, MaxTurnRatio: p.Protect.MaxTurnRatio}
	p.Dedupe.Enabled, p.Dedupe.Identity, p.Dedupe.ToolOnly = true, ByFields, true
	p.Dedupe.MinTokens, p.Dedupe.Arguments, p.Dedupe.ArgumentBytes, p.Dedupe.Redact = 25, true, 100, false
	p.Wording.Stub = "[tool_compaction] Tool result compacted for tool={tool}, ref={ref}. Large fields omitted."
	return p
}

// cortexProfile is microcompaction on a cold cache, behind a cap at insertion, with a summary of what is over 70 % still.
func cortexProfile() Policy {
	p := alone("cortex")
	p.Trigger, p.Target, p.Hard = 0.7, 0.25, 0.9
	p.Cache.TTLSeconds = 300
	p.Protect = Protect{Tools: []string{}, MaxTurnRatio: p.Protect.MaxTurnRatio}
	p.Cap = Cap{Enabled: true, AtInsertion: true, MaxTokens: 50_000, HeadChars: 2_000, TailChars: 2_000}
	p.Trim.Enabled, p.Trim.MinTokens = true, 0
	p.Trim.Categories = map[string]Category{
		"Read": Rereadable, "Glob": Rereadable, "Grep": Rereadable, "WebFetch": NonReproducible, "Bash": NonReproducible,
		"SubAgent": Ephemeral, "TaskOutput": Ephemeral,
	}
	p.Summarise.Enabled, p.Summarise.All, p.Summarise.KeepTurns, p.Summarise.KeepMessages, p.Summarise.Retain = true, true, 0, 6, false
	p.Summarise.Over = 0.7
	p.Truncate.Enabled = true
	p.Wording.Cap = "\n\n... [~{cut_tokens} tokens trimmed at insertion; full content at {ref}] ...\n\n"
	p.Wording.Bookend = "\n\n... [~{cut_tokens} tokens trimmed; full content at {ref}] ...\n\n"
	p.Wording.Placeholder = "[Tool result persisted -- {tool}: \"{preview}\" -- use Read on {ref} for full content]"
	p.Wording.Clear = "[Tool result cleared]"
	return p
}

// falaiProfile cuts old results at 5,000 characters, then collapses white space, then summarises, then drops.
func falaiProfile() Policy {
	p := alone("falai")
	p.Trigger, p.Target = 0.8, 0.79
	p.Protect = Protect{LastMessages: 4, Tools: []string{}, MaxTurnRatio: p.Protect.MaxTurnRatio}
	p.Cap = Cap{Enabled: true, MaxChars: 5_000, HeadChars: 5_000}
	p.Whitespace = Whitespace{Enabled: true}
	p.Summarise.Enabled, p.Summarise.All, p.Summarise.KeepTurns, p.Summarise.KeepMessages = true, true, 0, 4
	p.Summarise.MaxTokens, p.Summarise.Retain = 1_024, false
	p.Truncate.Enabled = true
	p.Wording.Cap = "\n\n[Truncated: {chars} chars total, showing first {head}]"
	p.Wording.Summary = "[Conversation Summary]\n{text}"
	return p
}

// llmProxyProfile stubs the older results of a resource above 100,000 of 128,000 tokens.
func llmProxyProfile() Policy {
	p := alone("llm-proxy")
	p.Trigger, p.Target = 0.78, 0.77
	p.Protect = Protect{Tools: []string{}, MaxTurnRatio: p.Protect.MaxTurnRatio}
	p.Tools.Table = LLMProxyTools
	p.Dedupe.Enabled, p.Dedupe.Identity, p.Dedupe.MinTokens, p.Dedupe.Redact = true, ByResource, 250, false
	p.Dedupe.AllowOperations = []Operation{FileRead, ViewFile, Search, ListDir, TestExecution}
	p.Dedupe.DenyOperations = []Operation{FileWrite, CommandExecution}
	p.Wording.Stub = "[COMPACTED] Previous output for {resource} ({bytes} bytes) was removed because a newer result for this resource exists later in the conversation."
	return p
}

// codeliaProfile caps at insertion by whole lines, bounds all results together, and summarises all but the last turn.
func codeliaProfile() Policy {
	p := alone("codelia")
	p.Trigger, p.Target = 0.8, 0.25
	p.Protect = Protect{Tools: []string{}, MaxTurnRatio: p.Protect.MaxTurnRatio}
	p.Cap = Cap{Enabled: true, AtInsertion: true, MaxBytes: 51_200, HeadChars: 51_200, WholeLines: true}
	p.Budget.Enabled = true
	p.Summarise.Enabled, p.Summarise.All, p.Summarise.KeepTurns, p.Summarise.KeepMessages = true, true, 1, 0
	p.Summarise.Over = 0.8
	p.Wording.Cap = "\n\n[tool output truncated; ref={ref}]"
	p.Wording.Placeholder = "[tool output trimmed; ref={ref}]"
	p.Wording.Clear = "[tool output trimmed; ref={ref}]"
	p.Wording.Summary = "{text}"
	return p
}

// defaultCategories names the tools of common agents.
func defaultCategories() map[string]Category {
	table := map[string]Category{}
	for category, tools := range map[Category][]string{
		Rereadable: {
			"Read", "Glob", "Grep", "LS", "read", "glob", "grep", "ls", "find", "cat", "view", "read_file", "read_many_files", "view_file", "open_file",
			"list_directory", "list_dir", "list_files", "search_files", "search_file_content", "file_search", "grep_search", "codebase_search",
		},
		NonReproducible: {
			"Bash", "WebFetch", "WebSearch", "bash", "shell", "exec", "exec_command", "terminal", "execute_command", "run_command", "run_shell_command",
			"run_terminal_cmd", "local_shell", "execute_bash", "fetch", "web_fetch", "web_search", "google_web_search", "browser",
		},
		Ephemeral: {"SubAgent", "TaskOutput", "task_output", "BashOutput", "TodoWrite", "todo_write", "update_plan"},
	} {
		for _, tool := range tools {
			table[tool] = category
		}
	}
	return table
}
