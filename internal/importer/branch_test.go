package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spokenIn returns the texts of a file's first conversation, in order, with what calls and results name.
func spokenIn(f *File) (all []string) {
	if len(f.Conversations) == 0 {
		return nil
	}
	for _, m := range f.Conversations[0].Messages {
		o := parseObject(m.Body)
		if isString(o["content"]) {
			all = append(all, o.text("content"))
		}
		for _, name := range []string{"content", "parts"} {
			for block := range objects(o[name]) {
				all = append(all, stringValue(block.first("text", "content", "name", "functionCall.name", "source.data")))
			}
		}
	}
	return all
}

// histories are files in which a person went back and on again: what is read of each, and of each of its branches.
var histories = map[string]struct {
	lines    string
	want     string
	skipped  int
	branches map[string]string
}{
	"Claude Code: a rewind to the second prompt": {
		lines: `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"first"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"one"}]}}
{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":"wrong turn"}}
{"type":"assistant","uuid":"a2","parentUuid":"u2","sessionId":"s","message":{"id":"m2","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}
{"type":"user","uuid":"r2","parentUuid":"a2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"gone"}]}}
{"type":"system","uuid":"y1","parentUuid":"a1","sessionId":"s","content":"rewound"}
{"type":"user","uuid":"u3","parentUuid":"y1","sessionId":"s","message":{"role":"user","content":"right turn"}}
{"type":"assistant","uuid":"a3","parentUuid":"u3","sessionId":"s","message":{"id":"m3","role":"assistant","content":[{"type":"text","text":"three"}]}}`,
		want: "first|one|right turn|three", skipped: 3, branches: map[string]string{"u2": "first|one|wrong turn|Bash|gone"},
	},
	"Claude Code: two rewinds to one prompt, and the first branch has one of its own": {
		lines: `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"first"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"one"}]}}
{"type":"user","uuid":"b1","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":"b"}}
{"type":"user","uuid":"b2","parentUuid":"b1","sessionId":"s","message":{"role":"user","content":"b, again"}}
{"type":"user","uuid":"b3","parentUuid":"b1","sessionId":"s","message":{"role":"user","content":"b, once more"}}
{"type":"user","uuid":"c1","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":"c"}}
{"type":"user","uuid":"d1","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":"d"}}`,
		want: "first|one|d", skipped: 4, branches: map[string]string{"b1": "first|one|b|b, once more", "c1": "first|one|c", "b2": "first|one|b|b, again"},
	},
	"Claude Code: a rewind before a compaction, and what progress stands before": {
		lines: `{"type":"user","uuid":"u0","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"never mind"}}
{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"first"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"A","input":{}}]}}
{"type":"progress","uuid":"p1","parentUuid":"a1","data":{"type":"hook_progress"}}
{"type":"assistant","uuid":"a2","parentUuid":"p1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"B","input":{}}]}}
{"type":"user","uuid":"r2","parentUuid":"a2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"2"}]}}
{"type":"user","uuid":"r1","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"1"}]}}
{"type":"user","uuid":"w1","parentUuid":"r1","sessionId":"s","message":{"role":"user","content":"wrong"}}
{"type":"user","uuid":"w2","parentUuid":"r1","sessionId":"s","message":{"role":"user","content":"right"}}
{"type":"system","subtype":"compact_boundary","uuid":"y1","parentUuid":null,"logicalParentUuid":"w2","content":"Conversation compacted"}
{"type":"user","uuid":"c1","parentUuid":"y1","sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"summary"}}
{"type":"user","uuid":"u9","parentUuid":"c1","sessionId":"s","message":{"role":"user","content":"on"}}`,
		want: "first|A|B|2|1|right|summary|on", skipped: 2, branches: map[string]string{"u0": "never mind", "w1": "first|A|B|2|1|wrong"},
	},
	"Claude Code: a summary that follows nothing continues what was compacted": {
		lines: `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"first"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"one"}]}}
{"type":"user","uuid":"c1","parentUuid":null,"sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"summary"}}
{"type":"user","uuid":"u2","parentUuid":"c1","sessionId":"s","message":{"role":"user","content":"on"}}`,
		want: "first|one|summary|on",
	},
	"Claude Code: parallel calls branch and belong together": {
		lines: `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"go"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"A","input":{}}]}}
{"type":"assistant","uuid":"a2","parentUuid":"a1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"B","input":{}}]}}
{"type":"user","uuid":"r1","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"1"}]}}
{"type":"user","uuid":"r2","parentUuid":"a2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"2"}]}}
{"type":"assistant","uuid":"a3","parentUuid":"r1","sessionId":"s","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"done"}]}}`,
		want: "go|A|B|1|2|done",
	},
	"Claude Code: ids that were redacted are no tree": {
		lines: `{"type":"user","uuid":"x","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"1"}}
{"type":"assistant","uuid":"x","parentUuid":"x","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"2"}]}}
{"type":"user","uuid":"x","parentUuid":"x","sessionId":"s","message":{"role":"user","content":"3"}}`,
		want: "1|2|3",
	},
	"Claude Code: prompts that were typed while it worked": {
		lines: `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"go"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"A","input":{}}]}}
{"type":"queue-operation","operation":"enqueue","content":"and the tests","sessionId":"s"}
{"type":"user","uuid":"r1","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"1"}]}}
{"type":"queue-operation","operation":"remove","sessionId":"s"}
{"type":"attachment","uuid":"q1","parentUuid":"r1","sessionId":"s","attachment":{"type":"queued_command","prompt":"and the tests","commandMode":"prompt"}}
{"type":"assistant","uuid":"a2","parentUuid":"q1","sessionId":"s","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"both"}]}}
{"type":"queue-operation","operation":"enqueue","content":"only in the queue","sessionId":"s"}
{"type":"queue-operation","operation":"enqueue","content":"taken back","sessionId":"s"}
{"type":"queue-operation","operation":"remove","sessionId":"s"}
{"type":"queue-operation","operation":"popAll","content":"taken back","sessionId":"s"}
{"type":"queue-operation","operation":"enqueue","content":"an own turn","sessionId":"s"}
{"type":"queue-operation","operation":"dequeue","sessionId":"s"}
{"type":"user","uuid":"u2","parentUuid":"a2","sessionId":"s","message":{"role":"user","content":[{"type":"text","text":"an own turn"}]}}
{"type":"attachment","uuid":"q2","parentUuid":"u2","sessionId":"s","attachment":{"type":"queued_command","prompt":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0K"}}]}}
{"type":"attachment","uuid":"q3","parentUuid":"q2","sessionId":"s","attachment":{"type":"todo_reminder","content":[]}}
{"type":"attachment","uuid":"q4","parentUuid":"q3","sessionId":"s","attachment":{"type":"file","filename":"/w/a.go","content":{"type":"text","file":{"filePath":"/w/a.go","content":"package a"}}}}
{"type":"attachment","uuid":"q5","parentUuid":"q4","sessionId":"s","attachment":{"type":"file","filename":"/w/a.png","content":{"type":"image","file":{"base64":"iVBORw0K","type":"image/png"}}}}`,
		want: "go|A|1|and the tests|both|only in the queue|an own turn|look|iVBORw0K|package a|iVBORw0K",
	},
	"Codex: two turns are rolled back, and one more": {
		lines: `{"type":"session_meta","payload":{"id":"s","base_instructions":{"text":"sys"}}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"first"}]}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"one"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"second"}]}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<turn_aborted>x</turn_aborted>"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"third"}]}}
{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":2}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"again"}]}}
{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"last"}]}}`,
		want: "sys|<environment_context>x</environment_context>|first|one|last", skipped: 5,
		branches: map[string]string{
			"line-9":  "sys|<environment_context>x</environment_context>|first|one|second|<turn_aborted>x</turn_aborted>|third",
			"line-11": "sys|<environment_context>x</environment_context>|first|one|again",
		},
	},
	"pi: the branch of the last entry": {
		lines: `{"type":"session","version":3,"id":"s","cwd":"/"}
{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"first"}}
{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","content":[{"type":"text","text":"one"}]}}
{"type":"message","id":"3","parentId":"2","message":{"role":"user","content":"left"}}
{"type":"message","id":"4","parentId":"3","message":{"role":"assistant","content":[{"type":"text","text":"no"}]}}
{"type":"branch_summary","id":"5","parentId":"2","summary":"tried left"}
{"type":"message","id":"6","parentId":"5","message":{"role":"user","content":"right"}}`,
		want: "first|one|right", skipped: 2, branches: map[string]string{"3": "first|one|left|no"},
	},
	"Qwen Code: a rewind": {
		lines: `{"uuid":"1","parentUuid":null,"type":"user","message":{"role":"user","parts":[{"text":"first"}]}}
{"uuid":"2","parentUuid":"1","type":"assistant","message":{"role":"model","parts":[{"text":"no"}]}}
{"uuid":"3","parentUuid":"1","type":"assistant","message":{"role":"model","parts":[{"text":"yes"}]}}`,
		want: "first|yes", skipped: 1, branches: map[string]string{"2": "first|no"},
	},
	"Gemini CLI: a rewind, and records in a change": {
		lines: `{"sessionId":"s","projectHash":"p"}
{"id":"1","type":"user","content":"first"}
{"$set":{"messages":[{"id":"1","type":"user","content":"first"},{"id":"2","type":"gemini","content":"one"}]}}
{"id":"3","type":"user","content":"no"}
{"id":"4","type":"gemini","content":"no!"}
{"$rewindTo":"3"}
{"id":"5","type":"user","content":"yes"}`,
		want: "first|one|yes", skipped: 2, branches: map[string]string{"line-6": "first|one|no|no!"},
	},
}

func TestTheBranchThatWasGoneOnWithIsTheConversation(t *testing.T) {
	t.Parallel()
	for name, h := range histories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Read(context.Background(), "s", []byte(h.lines), Auto)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(h.want, strings.Join(spokenIn(f), "|")); diff != "" || len(f.Report.Rejected) > 0 {
				t.Errorf("%s\n%+v", diff, f.Report)
			}
			if got := f.Report.Skipped[string(anotherBranch)]; got != h.skipped {
				t.Errorf("%d messages of other branches, want %d: %+v", got, h.skipped, f.Report)
			}
			total := f.Report.Imported
			for _, n := range f.Report.Skipped {
				total += n
			}
			if total != f.Report.Lines {
				t.Errorf("of %d records, %d are accounted for: %+v", f.Report.Lines, total, f.Report)
			}
			for branch, want := range h.branches {
				other, err := ReadBranch(context.Background(), "s", []byte(h.lines), Auto, branch)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, strings.Join(spokenIn(other), "|")); diff != "" || other.Conversations[0].ID != "s-"+branch {
					t.Errorf("branch %s of session %s: %s", branch, other.Conversations[0].ID, diff)
				}
			}
			if _, err := ReadBranch(context.Background(), "s", []byte(h.lines), Auto, "nobody"); len(h.branches) > 0 && err == nil {
				t.Error("a branch was read that the file does not have")
			}
		})
	}
}

// circles are two messages of which each follows the other, and one that follows itself, %s being the first's parent.
var circles = map[Source]string{
	OpenWebUI: `{"history":{"currentId":"bb","messages":{"aa":{"id":"aa","parentId":"%s","role":"user","content":"hi"},"bb":{"id":"bb","parentId":"aa","role":"assistant","content":"ho"}}}}`,
	LibreChat: `{"conversationId":"c","endpoint":"e","exportAt":"x","messages":[{"messageId":"aa","parentMessageId":"%s","isCreatedByUser":true,"text":"hi"},{"messageId":"bb","parentMessageId":"aa","text":"ho"}]}`,
	ClaudeAI:  `{"uuid":"c","chat_messages":[{"uuid":"aa","parent_message_uuid":"%s","sender":"human","text":"hi"},{"uuid":"bb","parent_message_uuid":"aa","sender":"assistant","text":"ho"}]}`,
	ChatGPT: `{"title":"t","current_node":"bb","mapping":{"aa":{"parent":"%s","children":["bb"],"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]}}},` +
		`"bb":{"parent":"aa","children":["aa"],"message":{"author":{"role":"assistant"},"content":{"content_type":"text","parts":["ho"]}}}}}`,
	ClaudeCode: `{"type":"user","uuid":"aa","parentUuid":"%s","sessionId":"s","message":{"role":"user","content":"hi"}}
{"type":"assistant","uuid":"bb","parentUuid":"aa","sessionId":"s","message":{"role":"assistant","content":"ho"}}`,
	Pi: `{"type":"message","id":"aa","parentId":"%s","message":{"role":"user","content":"hi"}}
{"type":"message","id":"bb","parentId":"aa","message":{"role":"assistant","content":"ho"}}`,
	Qwen: `{"uuid":"aa","parentUuid":"%s","type":"user","message":{"role":"user","parts":[{"text":"hi"}]}}
{"uuid":"bb","parentUuid":"aa","type":"assistant","message":{"role":"model","parts":[{"text":"ho"}]}}`,
	Droid: `{"type":"message","id":"aa","parentId":"%s","message":{"role":"user","content":"hi"}}
{"type":"message","id":"bb","parentId":"aa","message":{"role":"assistant","content":"ho"}}`,
}

// TestMessagesThatFollowEachOtherInACircleAreNoted, and none of them is lost.
func TestMessagesThatFollowEachOtherInACircleAreNoted(t *testing.T) {
	t.Parallel()
	for _, s := range sources {
		if circles[s.name] == "" {
			if s.tree != nil {
				t.Errorf("%s has a tree, and no circle", s.name)
			}
			continue
		}
		for _, first := range []string{"bb", "aa", "cc"} {
			f, err := Read(context.Background(), "s", []byte(fmt.Sprintf(circles[s.name], first)), s.name)
			if err != nil {
				t.Fatal(err)
			}
			noted := slices.ContainsFunc(f.Report.Notes, func(n Note) bool { return strings.Contains(n.Text, "in a circle") })
			if got := strings.Join(spokenIn(f), "|"); got != "hi|ho" || noted != (first != "cc") {
				t.Errorf("%s, where the first message follows %s: %q, %+v", s.name, first, got, f.Report)
			}
		}
	}
}
