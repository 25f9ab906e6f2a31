package importer

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rec writes one line of Claude Code's log: a type, the message, and further members.
func rec(kind, message, more string) string {
	return fmt.Sprintf(
		`{"type":%q,"uuid":"u-%x","sessionId":"s1","message":%s%s}`, kind, len(message)*7919+len(more), message, more,
	)
}

func user(content string) string { return rec("user", `{"role":"user","content":`+content+`}`, "") }

func assistant(id, content string) string {
	return rec("assistant", `{"model":"m","id":"`+id+`","role":"assistant","content":[`+content+`]}`, "")
}

func call(id string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"Read","input":{"n":"` + id + `"}}`
}

func result(id, text string) string {
	return `{"type":"tool_result","tool_use_id":"` + id + `","content":"` + text + `"}`
}

// show returns one line a message: its line in the file, its session if there are several, and its body.
func show(f *File) []string {
	var got []string
	for _, c := range f.Conversations {
		for _, m := range c.Messages {
			prefix := ""
			if len(f.Conversations) > 1 {
				prefix = c.ID + " "
			}
			got = append(got, fmt.Sprintf("%s%d %s", prefix, m.Line, m.Body))
		}
	}
	return got
}

func TestClaudeCodeMessages(t *testing.T) {
	t.Parallel()
	said := func(line int, content string) string {
		return fmt.Sprintf(`%d {"role":"user","content":%s}`, line, content)
	}
	wrote := func(line int, blocks ...string) string {
		return fmt.Sprintf(`%d {"role":"assistant","content":[%s]}`, line, strings.Join(blocks, ","))
	}
	heard := func(line int, blocks ...string) string {
		return fmt.Sprintf(`%d {"role":"user","content":[%s]}`, line, strings.Join(blocks, ","))
	}
	think := `{"type":"thinking","thinking":"","signature":"EqQB\/+=="}`
	note := `{"type":"text","text":"a\u0000b \ud800 <x> & é"}`
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{
			"lines of one API message become one message with their blocks in order, byte for byte",
			[]string{
				user(`"hi"`),
				assistant("m1", think),
				assistant("m1", note),
				assistant("m1", `{ "type" : "text", "text":"2" }`),
			},
			[]string{said(1, `"hi"`), wrote(2, think, note, `{ "type" : "text", "text":"2" }`)},
		},
		{
			"a string keeps its escapes",
			[]string{user(`"\u00e9\/\u0041 é"`)},
			[]string{said(1, `"\u00e9\/\u0041 é"`)},
		},
		{
			"results between the lines of one message follow the whole message",
			[]string{
				assistant("m1", call("a")),
				user("[" + result("a", "1") + "]"),
				assistant("m1", call("b")),
				user("[" + result("b", "2") + "]"),
			},
			[]string{wrote(1, call("a"), call("b")), heard(2, result("a", "1"), result("b", "2"))},
		},
		{
			"a result before its call follows it (finding C-03)",
			[]string{
				user(`"go"`),
				assistant("m1", call("a")),
				user("[" + result("b", "2") + "]"),
				assistant("m1", call("b")),
				user("[" + result("a", "1") + "]"),
			},
			[]string{said(1, `"go"`), wrote(2, call("a"), call("b")), heard(5, result("a", "1"), result("b", "2"))},
		},
		{
			"what stands beside a result before its call stays where it is",
			[]string{
				user("[" + note + "," + result("a", "1") + "]"),
				assistant("m1", call("a")),
			},
			[]string{heard(1, note), wrote(2, call("a")), heard(1, result("a", "1"))},
		},
		{
			"a result before a call that has its own, or that the user spoke before, stays where it is",
			[]string{
				user("[" + result("a", "0") + "," + result("b", "0") + "]"),
				assistant("m1", call("a")),
				user("[" + result("a", "1") + "]"),
				user(`"next"`),
				assistant("m2", call("b")),
			},
			[]string{heard(1, result("a", "0"), result("b", "0")), wrote(2, call("a")), heard(3, result("a", "1")), said(4, `"next"`), wrote(5, call("b"))},
		},
		{
			"results of parallel calls become one message, in the order in which they came",
			[]string{
				assistant("m1", call("a")),
				assistant("m1", call("b")),
				user("[" + result("b", "2") + "]"),
				user("[" + result("a", "1") + "]"),
				user(`"next"`),
			},
			[]string{wrote(1, call("a"), call("b")), heard(3, result("b", "2"), result("a", "1")), said(5, `"next"`)},
		},
		{
			"what stands beside a result comes behind all results of the message",
			[]string{
				assistant("m1", call("a")+","+call("b")),
				user("[" + note + "," + result("a", "1") + "]"),
				user("[" + result("b", "2") + "]"),
			},
			[]string{wrote(1, call("a"), call("b")), heard(2, result("a", "1"), result("b", "2"), note)},
		},
		{
			"a prompt typed while a tool runs comes behind the tool's result",
			[]string{
				assistant("m1", call("a")),
				user(`"wait"`),
				user("[" + result("a", "1") + "]"),
				assistant("m2", note),
			},
			[]string{wrote(1, call("a")), heard(3, result("a", "1")), said(2, `"wait"`), wrote(4, note)},
		},
		{
			"a late result goes to the message that asked for it",
			[]string{
				assistant("m1", call("a")+","+call("b")),
				user("[" + result("a", "1") + "]"),
				assistant("m2", note),
				user("[" + result("b", "2") + "]"),
			},
			[]string{wrote(1, call("a"), call("b")), heard(2, result("a", "1"), result("b", "2")), wrote(3, note)},
		},
		{
			"a repeated call id is answered at the nearest call before",
			[]string{
				assistant("m1", call("a")), user("[" + result("a", "1") + "]"),
				assistant("m2", call("a")), user("[" + result("a", "2") + "]"),
			},
			[]string{wrote(1, call("a")), heard(2, result("a", "1")), wrote(3, call("a")), heard(4, result("a", "2"))},
		},
		{
			"a result whose call is not in the file stays where it is",
			[]string{user("[" + result("gone", "1") + "]"), user(`"hi"`)},
			[]string{heard(1, result("gone", "1")), said(2, `"hi"`)},
		},
		{
			"an unanswered call stays unanswered",
			[]string{assistant("m1", call("a")), user(`"stop"`)},
			[]string{wrote(1, call("a")), said(2, `"stop"`)},
		},
		{
			"messages without an API id are not merged",
			[]string{assistant("", note), assistant("", note+" ")},
			[]string{wrote(1, note), wrote(2, note)},
		},
		{
			"meta lines, commands and a compaction's summary are user messages; the log before it stays",
			[]string{
				user(`"old"`), rec("system", `{}`, `,"subtype":"compact_boundary"`),
				rec("user", `{"role":"user","content":"This session is being continued"}`, `,"isCompactSummary":true`),
				rec("user", `{"role":"user","content":"<command-name>/x</command-name>"}`, `,"isMeta":true`),
			},
			[]string{
				said(1, `"old"`),
				said(3, `"This session is being continued"`),
				said(4, `"<command-name>/x</command-name>"`),
			},
		},
		{
			"the structured copy of a result is not read",
			[]string{
				assistant("m1", call("a")),
				rec(
					"user", `{"role":"user","content":[`+result("a", "1")+`]}`,
					`,"toolUseResult":{"stdout":"1","message":"x"}`,
				),
			},
			[]string{wrote(1, call("a")), heard(2, result("a", "1"))},
		},
		{
			"lines of an API error never came from a model",
			[]string{
				user(`"hi"`),
				rec(
					"assistant",
					`{"model":"<synthetic>","id":"x","role":"assistant","content":[{"type":"text","text":"No response"}]}`,
					"",
				),
				rec(
					"assistant",
					`{"model":"m","id":"y","role":"assistant","content":[{"type":"text","text":"API Error"}]}`,
					`,"isApiErrorMessage":true`,
				),
			},
			[]string{said(1, `"hi"`)},
		},
		{
			"a resume with another sessionId goes on with the conversation, and records that it copied are not doubled",
			[]string{
				user(`"hi"`), assistant("m1", note),
				strings.ReplaceAll(
					user(`"hi"`), `"s1"`, `"s2"`,
				), strings.ReplaceAll(assistant("m1", note), `"s1"`, `"s2"`),
				strings.ReplaceAll(user(`"go on"`), `"s1"`, `"s2"`),
			},
			[]string{said(1, `"hi"`), wrote(2, note), said(5, `"go on"`)},
		},
		{
			"records with a redacted uuid are no copies if anything else differs",
			[]string{
				`{"type":"user","uuid":"x","sessionId":"s","timestamp":"1","message":{"role":"user","content":"ok"}}`,
				`{"type":"user","uuid":"x","sessionId":"s","timestamp":"2","message":{"role":"user","content":"ok"}}`,
			},
			[]string{said(1, `"ok"`), said(2, `"ok"`)},
		},
		{
			"an assistant's string content becomes a text block when it is merged",
			[]string{
				rec("assistant", `{"id":"m1","role":"assistant","content":"a\/b"}`, ""),
				assistant("m1", call("a")),
			},
			[]string{wrote(1, `{"type":"text","text":"a\/b"}`, call("a"))},
		},
		{
			"each subagent is a conversation of its own, with or without agentId",
			[]string{
				user(`"main"`),
				rec("user", `{"role":"user","content":"A1"}`, `,"isSidechain":true,"agentId":"a1"`),
				rec("user", `{"role":"user","content":"old agent"}`, `,"isSidechain":true,"parentUuid":null`),
				`{"type":"progress","uuid":"p","parentUuid":"` + uuidOf(
					rec("user", `{"role":"user","content":"old agent"}`, `,"isSidechain":true,"parentUuid":null`),
				) + `","isSidechain":true}`,
				rec(
					"assistant", `{"id":"x","role":"assistant","content":[`+note+`]}`,
					`,"isSidechain":true,"agentId":"a1"`,
				),
				rec(
					"assistant", `{"id":"y","role":"assistant","content":[`+note+`]}`,
					`,"isSidechain":true,"parentUuid":"p"`,
				),
			},
			[]string{
				"s " + said(1, `"main"`),
				"s-agent-a1 " + said(2, `"A1"`), "s-agent-a1 " + wrote(5, note),
				"s-agent-1 " + said(3, `"old agent"`), "s-agent-1 " + wrote(6, note),
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := Read(context.Background(), "s", []byte(strings.Join(tt.lines, "\n")), ClaudeCode)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, show(f)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if len(f.Report.Rejected) > 0 {
				t.Errorf("rejected: %+v", f.Report.Rejected)
			}
		})
	}
}

func TestAResultThatWasMovedIsNoted(t *testing.T) {
	t.Parallel()
	lines := []string{user(`"go"`), user("[" + result("a", "1") + "]"), assistant("m1", call("a")), user(`"on"`)}
	f, err := Read(context.Background(), "s", []byte(strings.Join(lines, "\n")), ClaudeCode)
	if err != nil {
		t.Fatal(err)
	}
	want := []Note{{Line: 2, Text: `the result of call "a" stands before its call: it is stored behind it`}}
	if diff := cmp.Diff(want, f.Report.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func uuidOf(line string) string { return parseObject([]byte(line)).text("uuid") }

func TestClaudeCodeReport(t *testing.T) {
	t.Parallel()
	hi, ok := user(`"hi"`), assistant("m1", `{"type":"text","text":"ok"}`)
	tests := []struct {
		name  string
		lines []string
		want  Report
	}{
		{
			"what is no conversation is counted by kind",
			[]string{
				`{"type":"progress"}`,
				hi,
				`{"type":"progress"}`,
				`{"type":"summary","leafUuid":"u"}`,
				"",
				"  ",
				`{"type":"mode"}`,
			},
			Report{Lines: 5, Imported: 1, Skipped: map[string]int{"progress": 2, "summary": 1, "mode": 1}},
		},
		{
			"two objects run together on a line are both read",
			[]string{hi, ok + `{"type":"summary"}` + " " + user(`"more"`)},
			Report{
				Lines: 4, Imported: 3, Skipped: map[string]int{"summary": 1},
				Notes: []Note{{2, "3 JSON values run together on one line were read one by one"}},
			},
		},
		{
			"lines that cannot be read are kept with the reason",
			[]string{
				hi,
				`{"type":"user","mess`,
				"\x00\x00",
				`[1]`,
				`{"a":1}`,
				rec("user", `"x"`, ""),
				rec("user", `{"role":"assistant","content":"x"}`, ""),
				rec("user", `{"role":"user","content":7}`, ""),
				user(`[1]`),
			},
			Report{Lines: 9, Imported: 1, Skipped: map[string]int{}, Rejected: []Rejected{
				{2, "not JSON: the line ends inside a JSON value"},
				{3, `not JSON: invalid character '\x00' looking for beginning of value`},
				{4, "not a JSON object"},
				{5, "no record type"},
				{6, "a record of type user without a message"},
				{7, `a record of type user holds a message of role "assistant"`},
				{8, "the message's content is neither a string nor a list of blocks"},
				{9, "the message's content is neither a string nor a list of blocks"},
			}},
		},
		{
			"a message that is no UTF-8 cannot be stored",
			[]string{hi, user("\"\xff\"")},
			Report{
				Lines: 2, Imported: 1, Skipped: map[string]int{},
				Rejected: []Rejected{{2, "byte 26: the text is not valid UTF-8"}},
			},
		},
		{
			"a line break inside a string that is none for JSON does not end the line",
			[]string{user("\"a\u2028b\u0085c\""), ok + "\r"},
			Report{Lines: 2, Imported: 2, Skipped: map[string]int{}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := Read(context.Background(), "s", []byte(strings.Join(tt.lines, "\n")), Auto)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, f.Report); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAResumeThatCopiesRecordsAgainDoublesNone(t *testing.T) {
	t.Parallel()
	a := `{"type":"user","uuid":"same","message":{"role":"user","content":"first"}}`
	b := `{"type":"user","uuid":"same","message":{"role":"user","content":"second"}}`
	file, err := Read(context.Background(), "s", []byte(strings.Join([]string{a, b, a, b}, "\n")), ClaudeCode)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(file.Conversations[0].Messages); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

func TestSubagentsKeepConversationsOfTheirOwn(t *testing.T) {
	t.Parallel()
	side := func(agent, uuid string) string {
		return `{"type":"user","isSidechain":true,` + agent + `"uuid":"` + uuid + `","message":{"role":"user","content":"` + uuid + `"}}`
	}
	lines := []string{
		side(`"agentId":"é",`, "a"), side(`"agentId":"ü",`, "b"), side(`"agentId":"1",`, "c"), side(``, "d"),
	}
	file, err := Read(context.Background(), "s", []byte(strings.Join(lines, "\n")), ClaudeCode)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for _, c := range file.Conversations {
		ids[c.ID] += len(c.Messages)
	}
	if len(ids) != 4 {
		t.Errorf("conversations %v, want four of one message each", ids)
	}
}
