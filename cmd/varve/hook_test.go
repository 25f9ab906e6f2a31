package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheHookKeepsACodingAgentsSession gives samples/hooks/hook.mjs what Claude Code and Codex give to hooks: while a
// transcript grows, before a compaction and after it.
func TestTheHookKeepsACodingAgentsSession(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skipf("the hook for coding agents is not run: %v", err)
	}
	dir := t.TempDir()
	u, _ := shareUp(t)
	script, err := filepath.Abs(filepath.Join("..", "..", "samples", "hooks", "hook.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	run := func(input string, args ...string) string {
		hook := exec.CommandContext(t.Context(), node, append([]string{script}, args...)...)
		hook.Stdin = strings.NewReader(input)
		hook.Env = append(os.Environ(), "VARVE_URL="+u.url, "VARVE_KEY="+u.key)
		out, err := hook.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	for agent, lines := range map[string][]string{"claude-code": claudeLines(60), "codex": codexLines(60)} {
		transcript := filepath.Join(dir, agent+".jsonl")
		event := func(name string, until int) string {
			if err := os.WriteFile(transcript, []byte(strings.Join(lines[:until], "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return run(fmt.Sprintf(`{"session_id":%q,"transcript_path":%q,"hook_event_name":%q,"source":"compact","cwd":"/repo"}`, agent, transcript, name))
		}
		if out := event("Stop", len(lines)/2) + event("Stop", len(lines)/2) + event("PreCompact", len(lines)); out != "" {
			t.Errorf("%s is told: %s", agent, out)
		}
		var said struct {
			HookSpecificOutput struct{ HookEventName, AdditionalContext string }
		}
		out := event("SessionStart", len(lines))
		if err := json.Unmarshal([]byte(out), &said); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		back := said.HookSpecificOutput.AdditionalContext
		if said.HookSpecificOutput.HookEventName != "SessionStart" || !strings.Contains(back, "Messages ") || len(back) > 10_000 {
			t.Errorf("%s gets back: %s", agent, out)
		}
		if found := run("", agent, "grep_results", `{"pattern":"the key of file 1 is"}`); !strings.Contains(found, "secret-7919.") {
			t.Errorf("%s finds: %s", agent, found)
		}
		if first := run("", agent, "get_messages", `{"ref":"m1-2"}`); !strings.Contains(first, "Read the files.") {
			t.Errorf("%s reads: %s", agent, first)
		}
		if past := run("", agent, "get_messages", `{"from_seq":122}`); strings.Contains(past, "secret") {
			t.Errorf("%s was stored twice: %s", agent, past)
		}
	}
}

// fileText returns the text of a file with a secret.
func fileText(n int) string {
	return strings.Repeat(fmt.Sprintf("line %d of a file\\n", n), 200) + fmt.Sprintf("the key of file %d is secret-%d.", n, n*7919)
}

// claudeLines returns a transcript of Claude Code, in which it reads files.
func claudeLines(files int) []string {
	const user = `{"parentUuid":%s,"type":"user","sessionId":"s","uuid":"u%d","message":{"role":"user","content":%s}}`
	lines := []string{fmt.Sprintf(user, "null", 0, `"Read the files."`)}
	for n := 1; n <= files; n++ {
		lines = append(lines,
			fmt.Sprintf(`{"parentUuid":"u%d","type":"assistant","sessionId":"s","uuid":"a%d","message":{"role":"assistant","id":"m%d","content":`+
				`[{"type":"tool_use","id":"t%d","name":"Read","input":{"n":%d}}]}}`, n-1, n, n, n, n),
			fmt.Sprintf(user, fmt.Sprintf(`"a%d"`, n), n, fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]`, n, fileText(n))))
	}
	return lines
}

// codexLines returns a rollout of Codex, in which it reads files.
func codexLines(files int) []string {
	const item = `{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":%s}`
	lines := []string{fmt.Sprintf(item, `{"type":"message","role":"user","content":[{"type":"input_text","text":"Read the files."}]}`)}
	for n := 1; n <= files; n++ {
		lines = append(lines,
			fmt.Sprintf(item, fmt.Sprintf(`{"type":"function_call","name":"read","arguments":"{\"n\":%d}","call_id":"t%d"}`, n, n)),
			fmt.Sprintf(item, fmt.Sprintf(`{"type":"function_call_output","call_id":"t%d","output":"%s"}`, n, fileText(n))))
	}
	return lines
}
