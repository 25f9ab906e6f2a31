package importer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunsAreReadInEveryShape(t *testing.T) {
	t.Parallel()
	tests := []readable{
		{
			"a tau-bench run alone",
			`{"task_id":1,"traj":[{"role":"user","content":"a"}]}`,
			TauBench,
			[]string{`1 {"role":"user","content":"a"}`},
		},
		{
			"tau-bench runs on lines, one of them broken",
			`{"traj":[{"role":"user","content":"a"}]}` + "\n" + `{"traj":[` + "\n" + `{"traj":[{"role":"user","content":"b"}]}`,
			TauBench,
			[]string{`s 1 {"role":"user","content":"a"}`, `s-2 1 {"role":"user","content":"b"}`},
		},
		{
			"tau2 simulations in an array",
			`[{"termination_reason":"x","messages":[]},{"reward_info":{},"messages":[{"role":"user","content":"a"}]}]`,
			Tau2,
			[]string{`1 {"role":"user","content":"a"}`},
		},
		{
			"tau2 messages without a simulation around them",
			`[{"role":"assistant","turn_idx":0,"content":"","tool_calls":[{"id":"c","name":"n","arguments":{"a":"\ud800"},"requestor":"assistant"}]}]`,
			Tau2,
			[]string{
				`1 {"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{\"a\":\"\\ud800\"}"}}]}`,
			},
		},
		{
			"Agent Framework's messages in an array",
			`[{"role":"user","contents":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
			AgentFramework,
			[]string{`1 {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
		},
		{
			"a thread of Agent Framework",
			`{"chat_message_store_state":{"messages":[{"role":"user","contents":[{"type":"text","text":"a"}]}]}}`,
			AgentFramework,
			[]string{`1 {"role":"user","content":"a"}`},
		},
		{
			"a SWE-agent history without a trajectory",
			`{"history":[{"role":"user","content":"a","agent":"main"}],"info":{}}`,
			SWEAgent,
			[]string{`1 {"role":"user","content":"a"}`},
		},
		{
			"OpenHands events in an array",
			`[{"source":"user","action":"message","args":{"content":"a"}},{"source":"agent","action":"message","args":{"content":"b"}}]`,
			OpenHands,
			[]string{`1 {"role":"user","content":"a"}`, `2 {"role":"assistant","content":"b"}`},
		},
		{
			"OpenHands events on lines are one stream",
			`{"id":1,"source":"user","action":"message","args":{"content":"a"}}` + "\n" + `{"id":2,"source":"agent","action":"read","args":{"path":"/x"}}` + "\n" +
				`{"id":3,"source":"agent","observation":"read","cause":2,"content":"x"}`,
			OpenHands,
			[]string{
				`1 {"role":"user","content":"a"}`,
				`2 {"role":"assistant","content":null,"tool_calls":[{"id":"event-2","type":"function","function":{"name":"read","arguments":"{\"path\":\"/x\"}"}}]}`,
				`3 {"role":"tool","tool_call_id":"event-2","content":"x"}`,
			},
		},
		{
			"OpenHands runs on lines",
			`{"history":[{"action":"message","content":"a","action_risk":null}]}` + "\n" + `{"history":[{"kind":"MessageEvent","source":"user","llm_message":{"content":"b"}}]}`,
			OpenHands,
			[]string{`s 1 {"role":"user","content":"a"}`, `s-2 1 {"role":"user","content":"b"}`},
		},
		{
			"a sample of an Inspect log",
			`{"id":1,"epoch":1,"input":"a","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
			InspectLog,
			[]string{`1 {"role":"user","content":"a"}`},
		},
		{
			"LangChain messages as messages_to_dict writes them",
			`[{"type":"human","data":{"content":"a"}},{"type":"ai","data":{"content":"b","tool_calls":[{"name":"n","args":{},"id":"c"}]}}]`,
			LangChain,
			[]string{
				`1 {"role":"user","content":"a"}`,
				`2 {"role":"assistant","content":"b","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
			},
		},
		{
			"LangChain messages on lines",
			`{"type":"human","content":"a"}` + "\n" + `{"type":"ai","content":["b",{"type":"text","text":"c"}]}`,
			LangChain,
			[]string{`1 {"role":"user","content":"a"}`, `2 {"role":"assistant","content":"bc"}`},
		},
		{
			"UI message chunks on lines",
			`{"type":"start"}` + "\n" + `{"type":"text-delta","id":"t","delta":"a"}`,
			AISDKStream,
			[]string{
				`1 {"id":"message-1","role":"assistant","parts":[{"type":"text","text":"a","state":"streaming"}]}`,
			},
		},
		{
			"a Cline session without a system prompt",
			`{"agent":"lead","sessionId":"x","messages":[{"role":"user","content":"a"}]}`,
			Cline,
			[]string{`1 {"role":"user","content":"a"}`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.read(t)
		})
	}
}

func TestAFileReadAsAnyOtherSourceIsAccountedFor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.json*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range Sources() {
			if f, err := Read(context.Background(), "s", data, source); err == nil {
				checkLaws(t, f)
			}
		}
	}
}

// TestTheOnlyConversationOfAFileIsTheMainOne holds for every source with agents: the rule is in draft.finish.
func TestTheOnlyConversationOfAFileIsTheMainOne(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"Copilot CLI": `{"type":"assistant.message","data":{"content":"a","parentToolCallId":"c"}}`,
		"Claude Code": `{"type":"user","uuid":"u","isSidechain":true,"agentId":"c","message":{"role":"user","content":"a"}}`,
	} {
		f, err := Read(context.Background(), "s", []byte(file), Auto)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Conversations) != 1 || f.Conversations[0].ID != "s" {
			t.Errorf("%s: %+v", name, f.Conversations)
		}
	}
}

// TestABlockThatIsNoObjectRejectsItsRecord holds for every source that is read as turns of Anthropic.
func TestABlockThatIsNoObjectRejectsItsRecord(t *testing.T) {
	t.Parallel()
	for source, file := range map[Source]string{
		ClaudeCode: `{"type":"user","uuid":"u","message":{"role":"user","content":[7]}}`,
		Pi:         `{"type":"message","message":{"role":"user","content":[7]}}`,
		Droid:      `{"type":"message","message":{"role":"user","content":[7]}}`,
	} {
		f, err := Read(context.Background(), "s", []byte(file), source)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Report.Rejected) != 1 || f.Report.Rejected[0].Reason != errNoContent.Error() || f.Report.Imported != 0 {
			t.Errorf("%s: %+v", source, f.Report)
		}
	}
}

func TestRecordsAreReadInEveryShape(t *testing.T) {
	t.Parallel()
	record := `{"type":"user","uuid":"u",` + "\n" + `"message":{"role":"user","content":"a"}}`
	for shape, file := range map[string]string{
		"a line": strings.ReplaceAll(record, "\n", ""), "a value on two lines": record + "\n", "an array": "[" + record + "]",
	} {
		f, err := Read(context.Background(), "s", []byte(file), ClaudeCode)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{`1 {"role":"user","content":"a"}`}, show(f)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", shape, diff)
		}
		checkLaws(t, f)
	}
}
