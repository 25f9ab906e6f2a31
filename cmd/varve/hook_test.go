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

// TestTheHookKeepsACodingAgentsSession gives samples/hooks/hook.mjs what Claude Code and Codex give to hooks, and
// opencode.mjs what opencode gives to plugins: while a transcript grows, before a compaction and after it.
func TestTheHookKeepsACodingAgentsSession(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skipf("the hook for coding agents is not run: %v", err)
	}
	dir := t.TempDir()
	u, _ := shareUp(t)
	hooks, err := filepath.Abs(filepath.Join("..", "..", "samples", "hooks"))
	if err != nil {
		t.Fatal(err)
	}
	runNode := func(input string, args ...string) string {
		hook := exec.CommandContext(t.Context(), node, args...)
		hook.Stdin = strings.NewReader(input)
		hook.Env = append(os.Environ(), "VARVE_URL="+u.url, "VARVE_KEY="+u.key)
		out, err := hook.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	run := func(input string, args ...string) string {
		return runNode(input, append([]string{filepath.Join(hooks, "hook.mjs")}, args...)...)
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
	}
	// opencode: an idle session is sent twice, then compacted.
	host := filepath.Join(dir, "host.mjs")
	if err := os.WriteFile(host, []byte(opencodeHost), 0o600); err != nil {
		t.Fatal(err)
	}
	if back := runNode(opencodeExport(60), host, filepath.Join(hooks, "opencode.mjs")); !strings.Contains(back, "Messages ") || len(back) > 10_000 {
		t.Errorf("opencode gets back: %s", back)
	}
	for _, agent := range []string{"claude-code", "codex", "opencode"} {
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

// opencodeHost calls a plugin as opencode does, with a session on standard input, and prints what a compaction is told.
const opencodeHost = `
import { pathToFileURL } from 'node:url'
const { Varve } = await import(pathToFileURL(process.argv[2]))
let input = ''
for await (const piece of process.stdin.setEncoding('utf8')) input += piece
const { info, messages } = JSON.parse(input)
const client = {
  session: { get: async () => ({ data: info }), messages: async () => ({ data: messages }) },
  app: { log: async ({ body }) => { throw new Error(body.message) } },
}
const plugin = await Varve({ client, directory: '/repo' }), output = { context: [] }
for (const sessionID of [info.id, info.id]) await plugin.event({ event: { type: 'session.idle', properties: { sessionID } } })
await plugin['experimental.session.compacting']({ sessionID: info.id }, output)
process.stdout.write(output.context.join(''))
`

// opencodeExport returns a session of opencode, in which it reads files.
func opencodeExport(files int) string {
	const message = `{"info":{"id":"m%d","role":%q,"time":{"created":%d}},"parts":[%s]}`
	messages := []string{fmt.Sprintf(message, 0, "user", 1, `{"type":"text","text":"Read the files."}`)}
	for n := 1; n <= files; n++ {
		part := fmt.Sprintf(`{"type":"step-start"},{"type":"tool","callID":"t%d","tool":"read","state":{"status":"completed","input":{"n":%d},"output":"%s"}}`, n, n, fileText(n))
		messages = append(messages, fmt.Sprintf(message, n, "assistant", n, part))
	}
	return `{"info":{"id":"opencode","directory":"/repo","version":"1.2.0"},"messages":[` + strings.Join(messages, ",") + "]}"
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
