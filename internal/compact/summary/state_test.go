package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// state returns the summary of messages for a reader who has the user's words elsewhere.
func state(t *testing.T, messages ...summary.Message) string {
	t.Helper()
	messages = append(messages, filler, said("assistant", "Good."))
	return summary.Extract(summary.Request{Messages: numbered(1, messages...), MaxTokens: 2_000, WordsKept: true}).Summary
}

// has reports an error for each text that is not in the summary, and for each after "not " that is.
func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		unwanted, not := strings.CutPrefix(want, "not ")
		if strings.Contains(text, unwanted) == not {
			t.Errorf("%q\nin\n%s", want, text)
		}
	}
}

const rejection = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the" +
	" new_string was NOT written to the file). To tell you how to proceed, the user said:\n"

// The first of the three summaries of the measurement: the goal was a tag, the user's steering an unsolved error, and
// the last line of gh's output "]".
func TestARejectedCallIsTheUserSpeaking(t *testing.T) {
	t.Parallel()
	text := state(t,
		said("user", "<command-message>github-pr-review</command-message>\n<command-name>/github-pr-review</command-name>"),
		said("user", "Base directory for this skill: /Users/a/.claude/skills/github-pr-review\n\nYou must ALWAYS reply in threads."),
		calls("Edit", "c1", `{"file_path":"/w/state.go","old_string":"a","new_string":"LastInteractionTime"}`),
		failed("c1", rejection+"the other branch just got merged today - can we create a new patch PR which renames it on main instead?"),
		calls("Bash", "c2", `{"command":"gh pr create --draft --fill"}`),
		answers("c2", "{\n  \"url\": \"https://example.test/pull/175\"\n}\n]"),
	)
	has(t, text, "## Task now\n- [1] /github-pr-review\n- [4] then: the other branch just got merged today", "not command-message",
		"not ALWAYS", "not Errors", "not in flight", "- [4] The user refused Edit: /w/state.go ⇒ the other branch",
		`- [6] Bash: gh pr create --draft --fill ⇒ "url": "https://example.test/pull/175"`)
}

// The second one: six of eight demands were harness text and sentences of Claude Code's summary, and findings were
// narration and names without a sentence.
func TestWhatNobodySaidIsNoDemand(t *testing.T) {
	t.Parallel()
	messages := []summary.Message{
		said("user", "can you check the auto commits?"),
		said("user", "<local-command-caveat>Caveat: DO NOT respond to these messages unless the user explicitly asks you to.</local-command-caveat>"),
		said("assistant", "I think I found it. I can see the issue now. The real issue was:\n\n`Write`\n\n`Edit`\n\n"+
			"The switch to `git add` was made for the wrong reason. So why?"),
		said("user", "This session is being continued from a previous conversation that ran out of context.\nAnalysis:\nI must never guess.\n\n"+
			"Summary:\n1. Primary Request and Intent:\n   - Review the branch\n\n4. Errors and fixes:\n"+
			"   - `ToRelativePath` failed because it used the cwd instead of the repo root.\n\n8. All user messages:\n   - \"never push\""),
	}
	has(t, state(t, messages...), "- [3] The switch to `git add` was made for the wrong reason.", "not I think", "not I can see",
		"not - [3] `", "- [3] The real issue was: `Write`", "not `Edit`", "not why?", "not must never guess", "not never push", "not Review the branch", "not Caveat",
		"- [4] `ToRelativePath` failed because it used the cwd", "not Earlier")
	r := summary.Request{Messages: numbered(1, append(messages, filler)...), MaxTokens: 2_000}
	has(t, summary.Extract(r).Summary, "## Goal\n- [1] can you check", "not ## The user's demands", "- [4] Review the branch",
		"## The user's messages\n- [4] \"never push\"")
}

// The third one: the goal was eight tasks old, and nothing said which task was done, and how.
func TestTheTaskNowIsNotTheFirstOne(t *testing.T) {
	t.Parallel()
	text := state(t,
		said("user", "read main.ts in full and plan how to untangle it"),
		calls("Write", "c1", `{"path":"docs/refactor.md","content":"x"}`), answers("c1", "ok"),
		said("assistant", "The plan is in docs/refactor.md: it has 15 work packages."),
		said("user", "ok, this looks amazing"),
		calls("edit", "c2", `{"path":"src/session.ts","oldText":"class A {}","newText":"class A {}\nexport class AgentSession {}"}`), answers("c2", "ok"),
		calls("edit", "c3", `{"path":"src/session.ts","oldText":"x","newText":"\tsubscribe(listener) {"}`), answers("c3", "ok"),
		calls("bash", "c4", `{"command":"cd /w && git add -A && git commit -m \"Add AgentSession\" && git push"}`),
		answers("c4", "[refactor 14d99b5] Add AgentSession\n 2 files changed\nTo example.test:w.git"),
		said("user", "yo"),
		calls("edit", "c5", `{"path":"src/session.ts","oldText":"x","newText":"\treset() {"}`), answers("c5", "ok"),
		said("user", "why are there 2 subscription handlers?"),
		calls("edit", "c6", `{"path":"src/session.ts","oldText":"x","newText":"\tdispose() {"}`), answers("c6", "ok"),
	)
	has(t, text, "## Task now\n- [15] why are there 2 subscription handlers?\n",
		"- [1] read main.ts in full and plan how to untangle it ⇒ The plan is in docs/refactor.md: it has 15 work packages.",
		"- [11] commit: [refactor 14d99b5] Add AgentSession (refactor.md, session.ts)",
		"## Files in flight\n- [17] src/session.ts -- edited: reset() {; dispose() {\n", "not yo\n", "not Files read")
}

func TestFilesThatAShellWritesAreInFlight(t *testing.T) {
	t.Parallel()
	text := state(t, said("user", "write it"),
		calls("bash", "c1", `{"command":"cat > n.py <<'EOF'\nprint(1); x && y\nEOF"}`), answers("c1", "<returncode>0</returncode>\n<output>\n</output>"),
		calls("bash", "c2", `{"command":"sed -i 's/1/2/' n.py && python n.py"}`), answers("c2", "2"),
	)
	has(t, text, "## Files in flight\n- [5] n.py -- written\n", "not ## Calls")
	text = state(t, said("user", "write it"), calls("bash", "c1", `{"command":"sed -i 's/1/2/' n.py"}`), answers("c1", ""),
		calls("bash", "c2", `{"command":"git checkout -- n.py"}`), answers("c2", "Updated 1 path from the index"))
	has(t, text, "not n.py -- written")
}

func TestTheDirectoryOfTheFilesInFlightStandsOnce(t *testing.T) {
	t.Parallel()
	messages := []summary.Message{said("user", "write them")}
	for i, name := range []string{"a.go", "b/c.go", "b/d -- e.go"} {
		id := fmt.Sprint("c", i)
		call := calls("Write", id, fmt.Sprintf(`{"file_path":"/home/me/src/work/%s","content":"x"}`, name))
		messages = append(messages, call, answers(id, "ok"))
	}
	text := state(t, messages...)
	has(t, text, "## Files in flight, in /home/me/src/\n- [3] work/a.go -- written\n- [5] work/b/c.go -- written\n"+
		"- [7] work/b/d -- e.go -- written\n")
	again := summary.Request{Previous: text, Messages: numbered(
		20, calls("Write", "d", `{"file_path":"/home/me/src/x.go","content":"x"}`), answers("d", "ok"), filler,
	)}
	has(t, summary.Extract(again).Summary, "## Files in flight, in /home/me/\n- [3] src/work/a.go -- written\n", "- [21] src/x.go -- written")
}

func TestTheDirectoryOfTheFilesReadStandsOnce(t *testing.T) {
	t.Parallel()
	r := summary.Request{Messages: numbered(
		1, said("user", "read them"), calls("Read", "c1", `{"file_path":"/home/me/src/work/a.go"}`), answers("c1", "package a"),
		calls("Read", "c2", `{"file_path":"/home/me/src/work/b/c.go"}`), answers("c2", "package c"), filler,
	)}
	text := summary.Extract(r).Summary
	has(t, text, "## Files read, in /home/me/src/\n- [3] work/a.go -- read\n- [5] work/b/c.go -- read")
	again := summary.Request{Previous: text, Messages: numbered(7, filler)}
	has(t, summary.Extract(again).Summary, "## Files read, in /home/me/src/\n- [3] work/a.go -- read\n- [5] work/b/c.go -- read")
}

func TestTheRulesOfAProjectAreDemands(t *testing.T) {
	t.Parallel()
	rules := "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nThis is a shop.\n- Never commit to main.\n</INSTRUCTIONS>"
	text := state(t, said("user", rules), said("user", "write it"))
	has(t, text, "## The user's demands\n- [1] Never commit to main.\n", "## Task now\n- [2] write it\n", "not shop")
}

func TestTheUsersWordsAreNotRepeated(t *testing.T) {
	t.Parallel()
	text := state(t,
		said("user", "Never change the schema of ledger_v2! The port is 5433."), said("assistant", "The export is fixed in 3 places now."),
		said("user", "You must write docs, too."), calls("Read", "c1", `{"file_path":"/w/a.go"}`), answers("c1", "package a"),
	)
	has(t, text, "not ## The user's", "not ## Goal", "not ## Files read", "not 5433.\n", "## Task now\n- [3] You must write docs, too.")
}

func TestTheNextStepIsWhatTheAgentSaysLast(t *testing.T) {
	t.Parallel()
	messages := numbered(1, said("user", "fix the export"), filler,
		said("assistant", "The index is there.\n\nNext steps:\n- measure with 2,000 invoices\n- write the note\n\nLet me start the load test. Shall I use stage-3?"))
	text := summary.Extract(summary.Request{Messages: messages, MaxTokens: 2_000, WordsKept: true}).Summary
	has(t, text, "## Next\n- [3] measure with 2,000 invoices\n- [3] write the note\n", "- [3] doing: Let me start the load test.",
		"- [3] asked the user: Shall I use stage-3?")
	r := summary.Request{Previous: text, Messages: numbered(4, said("user", "no, on stage-4"), filler), MaxTokens: 2_000, WordsKept: true}
	has(t, summary.Extract(r).Summary, "## Task now\n- [4] no, on stage-4", "not stage-3?", "- [1] fix the export ⇒ The index is there.")
}

func TestTheLineThatTellsIsTheOutcome(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ command, output, want string }{
		"a test of Go": {
			"go test ./x", "=== RUN TestA\n    a_test.go:12: got 3, expected 4\n--- FAIL: TestA (0.00s)\nFAIL\nexit status 1\nFAIL x 0.1s",
			"a_test.go:12: got 3, expected 4 | --- FAIL: TestA (0.00s)",
		},
		"an exception of Python": {
			"python run.py", "Traceback (most recent call last):\n  File \"run.py\", line 3\nValueError: bad port\n", "ValueError: bad port",
		},
		"a compiler": {
			"make lint", "[lint] ERROR task failed\na/b.go:81:15: undefined: config.NewConfig\n[lint] ERROR task failed\nexit status 1",
			"a/b.go:81:15: undefined: config.NewConfig",
		},
		"a tool of JavaScript": {
			"npm run check", "npm error Lifecycle script failed\nsrc/a.ts(532,34): error TS2339: Property 'x' does not exist on type 'Y'.\nnpm error code 2",
			"src/a.ts(532,34): error TS2339: Property 'x' does not exist on type 'Y'.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := state(t, said("user", "test it"), calls("Bash", "c1", fmt.Sprintf("{%q:%q}", "command", tt.command)), failed("c1", tt.output))
			has(t, text, "## Errors, not solved\n- [3] Bash: "+tt.command+" ⇒ "+tt.want+"\n")
		})
	}
}

func TestAnErrorIsOpenAsLongAsItMatters(t *testing.T) {
	t.Parallel()
	test := func(id, command string) summary.Message {
		return calls("Bash", id, fmt.Sprintf(`{"command":%q}`, command))
	}
	edit := `{"file_path":"/w/a.go","old_string":"x","new_string":"y"}`
	open := []summary.Message{
		said("user", "test it"),
		test("c1", "go test ./a -run TestX 2>&1 | tail -5"), failed("c1", "a_test.go:3: error: one"),
		test("c2", "cat missing.txt"), failed("c2", "cat: missing.txt: No such file or directory"),
		calls("Edit", "c3", edit), failed("c3", "<tool_use_error>String to replace not found in file.</tool_use_error>"),
	}
	has(t, state(t, open...), "- [3] Bash: go test ./a -run TestX 2>&1 | tail -5 ⇒ a_test.go:3: error: one", "not missing.txt",
		"- [7] Edit: /w/a.go ⇒ ")
	after := append(open, calls("Edit", "c4", strings.Replace(edit, "x", "z", 1)), answers("c4", "ok"),
		test("c5", "go test ./b"), answers("c5", "ok b"))
	has(t, state(t, after...), "## Errors, not solved\n- [3] Bash: go test ./a", "not Edit: /w/a.go ⇒")
	has(t, state(t, append(after, test("c6", "cd /w && go test ./..."), answers("c6", "ok a"))...), "not not solved",
		"## Errors, past\n- [3] Bash: go test ./a -run TestX 2>&1 | tail -5 ⇒ a_test.go:3: error: one, solved at 13")
	has(t, state(t, append(after, said("assistant", "It is the old one."), said("user", "write the notes"), said("assistant", "The notes are in a.md."),
		said("user", "send the notes"))...), "not not solved", "## Errors, past\n- [3] Bash: go test ./a")
}

func TestThePlanHasWhatIsDone(t *testing.T) {
	t.Parallel()
	text := state(t, said("user", "build it"),
		calls("TodoWrite", "c1", `{"todos":[{"content":"parse","status":"completed"},{"content":"print","status":"completed"},{"content":"measure","status":"pending"}]}`),
		answers("c1", "ok"), calls("TaskCreate", "c2", `{"subject":"write docs"}`), answers("c2", "Task #1 created successfully: write docs"),
		calls("TaskCreate", "c3", `{"subject":"ship"}`), answers("c3", "Task #2 created successfully: ship"),
		calls("TaskUpdate", "c4", `{"taskId":"1","status":"completed"}`), answers("c4", "Updated task #1 status"),
		calls("TaskUpdate", "c5", `{"taskId":"2","status":"in_progress"}`), answers("c5", "Updated task #2 status"),
	)
	has(t, text, "todo: measure (pending)", "done: parse; print; #1 write docs", "todo: #2 ship (in progress)", "not #1 write docs (pending)")
}
