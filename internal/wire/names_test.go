package wire_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// strangeNames are names of tools that some provider refuses, and a few that are like them.
var strangeNames = []string{
	"fs.read:file", "my tool", "mcp__server/tool", "日本語", strings.Repeat("n", 64), strings.Repeat("n", 65), strings.Repeat("n", 90),
	strings.Repeat("n", 128), strings.Repeat("n", 129), "", "9lives", "-x", "_", "a\"b\\c", "unknown",
}

// calling returns a call of a tool and its result, after a message of the user and before one.
func calling(f session.Format, tool string) []wire.Stored {
	name := string(rawjson.Quote(nil, []byte(tool)))
	inner := name[1 : len(name)-1]
	list := map[session.Format][]string{
		session.OpenAIChat: {`{"role":"user","content":"go"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":` + name + `,"arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"c1","name":` + name + `,"content":"r"}`, `{"role":"user","content":"on"}`},
		session.OpenAIResponses: {`{"role":"user","content":"go"}`, `{"type":"function_call","call_id":"c1","name":` + name + `,"arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c1","output":"r"}`, `{"role":"user","content":"on"}`},
		session.Anthropic: {`{"role":"user","content":"go"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":` + name + `,"input":{},"cache_control":{"type":"ephemeral"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}`, `{"role":"user","content":"on"}`},
		session.Gemini: {`{"role":"user","parts":[{"text":"go"}]}`, `{"role":"model","parts":[{"functionCall":{"name":` + name + `,"args":{}},"thoughtSignature":"c2ln"}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":` + name + `,"response":{"output":"r"}}}]}`, `{"role":"user","parts":[{"text":"on"}]}`},
		session.AISDK: {`{"id":"1","role":"user","parts":[{"type":"text","text":"go"}]}`,
			`{"id":"2","role":"assistant","parts":[{"type":"tool-` + inner + `","toolCallId":"c1","state":"output-available","input":{},"output":"r"}]}`, `{"id":"3","role":"user","parts":[{"type":"text","text":"on"}]}`},
	}[f]
	return storedOf(f, list)
}

// namesIn returns the names of tools in calls and results.
func namesIn(f session.Format, bodies [][]byte) (names []string) {
	for _, body := range bodies {
		facts, _ := wire.Inspect(f, body)
		for _, p := range facts.Parts {
			if p.Kind == wire.Call || p.Kind == wire.Result && p.Name != "" {
				names = append(names, p.Name)
			}
		}
	}
	return slices.Compact(names)
}

// TestC01NamesOfToolsAreOnesThatTheProviderTakes renders calls of every format for every other one, and every dialect.
func TestC01NamesOfToolsAreOnesThatTheProviderTakes(t *testing.T) {
	t.Parallel()
	for _, from := range session.Formats() {
		for _, tool := range strangeNames {
			for _, target := range session.Formats() {
				for _, d := range append(provider.DialectsOf(target), "") {
					checkName(t, from, target, tool, wire.Options{Dialect: d})
				}
			}
		}
	}
}

func checkName(t *testing.T, from, target session.Format, tool string, o wire.Options) {
	t.Helper()
	name := fmt.Sprintf("%s of %s as %s for %q", tool, from, target, o.Dialect)
	made := wiretest.Render(target, calling(from, tool), o)
	if found := wiretest.Validate(target, made.Bodies, o); len(found) > 0 {
		t.Errorf("%s: %v", name, found)
	}
	want := wire.ToolName(target, tool, o)
	if got := namesIn(target, made.Bodies); !slices.Equal(got, []string{want}) {
		t.Errorf("%s: the names are %q, not %q", name, got, want)
	}
	if want == tool {
		if made.ToolNames != nil || kindsOf(made.Repairs)["tool_renamed"] > 0 {
			t.Errorf("%s: names %v, repairs %v", name, made.ToolNames, made.Repairs)
		}
		return
	}
	if diff := cmp.Diff(map[string]string{tool: want}, made.ToolNames); diff != "" {
		t.Errorf("%s: tool_names (-want +got):\n%s", name, diff)
	}
	i := slices.IndexFunc(made.Repairs, func(r wire.Repair) bool { return r.Kind == "tool_renamed" })
	if i < 0 || made.Repairs[i].Seq != 2 || made.Repairs[i].Rule != provider.Of(target).Codes.ToolName {
		t.Errorf("%s: repairs %v", name, made.Repairs)
	}
}

// TestWhereAToolIsRenamedNothingElseChanges has calls and results with members that only their own format has.
func TestWhereAToolIsRenamedNothingElseChanges(t *testing.T) {
	t.Parallel()
	for f, calls := range map[session.Format][]string{
		session.OpenAIChat: {
			`{"role":"assistant","content":null,"tool_calls":[{"type" : "function","id":"c1","function":{"arguments":"{ }", "name" : "my tool"}}]}`,
			`{"role":"tool","tool_call_id":"c1","name":"my tool","content":"r"}`,
		},
		session.OpenAIResponses: {
			`{"status":"completed","id":"fc_1", "type":"function_call","call_id":"c1","arguments":"{ }","name" : "my tool"}`,
			`{"type":"custom_tool_call","call_id":"c2","name":"my tool","input":"x","id":"ctc_1"}`,
		},
		session.Anthropic: {`{"role":"assistant","content":[{"cache_control":{"type" : "ephemeral"},"type":"tool_use","name":"my tool","id":"c1","input":{ }}]}`},
		session.Gemini: {
			`{"role":"model","parts":[{"thoughtSignature":"c2ln", "function_call":{"args":{"a" : 1},"name":"my tool","id":"c1"}}]}`,
			`{"role":"user","parts":[{"function_response":{"response":{"any" : 1},"id":"c1","name":"my tool"}}]}`,
		},
		session.AISDK: {`{"id":"m","role":"assistant","parts":[{"type":"step-start"},{"toolCallId":"c1", "type":"dynamic-tool","title":"T","toolName" : "my tool","state":"output-available","input":{ },"output":{ }}]}`},
	} {
		made := wiretest.Render(f, append(calling(f, "f")[:1], storedOf(f, calls)...), wire.Options{Dialect: "anthropic"})
		for i, call := range calls {
			if want := strings.ReplaceAll(call, "my tool", wire.PlainToolName("my tool")); string(made.Bodies[1+i]) != want {
				t.Errorf("%s: a message is\n%s\nnot\n%s", f, made.Bodies[1+i], want)
			}
		}
		if got := kindsOf(made.Repairs); len(made.Repairs) != len(calls) || got["tool_renamed"] != len(calls) {
			t.Errorf("%s: repairs %v", f, made.Repairs)
		}
	}
}

// TestALegacyCallAndItsResultStayAPair renames a function_call, whose result its name alone finds, in both forms.
func TestALegacyCallAndItsResultStayAPair(t *testing.T) {
	t.Parallel()
	const (
		old, oldResult = `{"role":"assistant","content":null,"function_call":{"name":"my tool","arguments":"{}"}}`, `{"role":"function","name":"my tool","content":"r"}`
		now, nowResult = `{"role":"assistant","content":null,"tool_calls":[{"id":"function:my tool","type":"function","function":{"name":"my tool","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"function:my tool","content":"r"}`
	)
	for _, pair := range [][]string{{old, oldResult}, {old, nowResult}, {now, oldResult}, {now, nowResult}} {
		for _, d := range append(provider.DialectsOf(session.OpenAIChat), "") {
			o := wire.Options{Dialect: d}
			made := wiretest.Render(session.OpenAIChat, storedOf(session.OpenAIChat, append([]string{`{"role":"user","content":"go"}`}, pair...)), o)
			if found := wiretest.Validate(session.OpenAIChat, made.Bodies, o); len(found) > 0 {
				t.Errorf("%q: %v for %q: %v\n%s", pair, found, d, made.Repairs, made.Bodies)
			}
		}
	}
}

// TestOneToolHasOneOtherName asks for the other names of many tools: they depend on nothing but the name, are no other
// tool's, and are taken everywhere.
func TestOneToolHasOneOtherName(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	letters := []rune(`abAB01_-.:/ "日ü` + "\u0000")
	of := map[string]string{}
	for range 100_000 {
		name := make([]rune, rng.IntN(12)+rng.IntN(2)*rng.IntN(140))
		for i := range name {
			name[i] = letters[rng.IntN(len(letters))]
		}
		tool := string(name)
		plain := wire.PlainToolName(tool)
		if other, taken := of[plain]; taken && other != tool {
			t.Fatalf("%q is the name of %q and of %q", plain, other, tool)
		}
		of[plain] = tool
		if !provider.TakenEverywhere(plain) || wire.PlainToolName(plain) != plain {
			t.Fatalf("%q is %q", tool, plain)
		}
		for _, f := range session.Formats() {
			if got := wire.ToolName(f, tool, wire.Options{}); got != tool && got != plain {
				t.Fatalf("%q is %q in %s, and not %q", tool, got, f, plain)
			}
		}
	}
}

// TestANameIsTheSameInEveryView renders a conversation with many tools after each message, and from each message on.
func TestANameIsTheSameInEveryView(t *testing.T) {
	t.Parallel()
	for _, from := range session.Formats() {
		var view []wire.Stored
		for i, tool := range strangeNames {
			for _, m := range calling(from, tool) {
				m.Body = bytes.ReplaceAll(m.Body, []byte(`"c1"`), fmt.Appendf(nil, `"c%d"`, i))
				m.Seq = int64(len(view) + 1)
				view = append(view, m)
			}
		}
		for _, target := range session.Formats() {
			whole := wiretest.Render(target, view, wire.Options{}).ToolNames
			for n := range view {
				for _, part := range [][]wire.Stored{view[:n], view[n:]} {
					for tool, name := range wiretest.Render(target, part, wire.Options{}).ToolNames {
						if whole[tool] != name {
							t.Fatalf("%s as %s: %q is %q, and %q in a part", from, target, tool, whole[tool], name)
						}
					}
				}
			}
			if names := slices.Sorted(maps.Values(whole)); len(slices.Compact(names)) != len(whole) {
				t.Errorf("%s as %s: two tools have one name: %v", from, target, whole)
			}
		}
	}
}

// TestACallByTheOtherNameMayComeBack appends the call that a model makes by the name that a view has for a tool.
func TestACallByTheOtherNameMayComeBack(t *testing.T) {
	t.Parallel()
	const tool = "fs.read:file"
	other := wire.PlainToolName(tool)
	view := append(calling(session.Gemini, tool), storedOf(session.Anthropic, []string{
		`{"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"` + other + `","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"r"}]}`,
	})...)
	for target, want := range map[session.Format][]string{
		session.Gemini: {tool, other}, session.Anthropic: {other}, session.OpenAIChat: {other}, session.OpenAIResponses: {other}, session.AISDK: {tool, other},
	} {
		made := wiretest.Render(target, view, wire.Options{})
		if got := namesIn(target, made.Bodies); !slices.Equal(got, want) {
			t.Errorf("%s: the names are %q, not %q", target, got, want)
		}
	}
}

// TestAMessageWithARefusedNameMayNeedRepair has every place of a name, in its own format.
func TestAMessageWithARefusedNameMayNeedRepair(t *testing.T) {
	t.Parallel()
	for f, bodies := range map[session.Format][]string{
		session.OpenAIChat: {
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"NAME","arguments":"{}"}}]}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"NAME","input":""}}]}`,
			`{"role":"assistant","content":null,"function_call":{"name":"NAME","arguments":"{}"}}`,
			`{"role":"assistant","content":null,"function_call":{"name":"NAME","arguments":"{}"},"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"function","name":"NAME","content":"r"}`, `{"role":"tool","tool_call_id":"a","name":"NAME","content":"r"}`,
			`{"role":"user","name":"NAME","content":"u"}`, `{"role":"assistant","name":"NAME","content":"u"}`, `{"role":"system","name":"NAME","content":"u"}`,
		},
		session.OpenAIResponses: {`{"type":"function_call","call_id":"a","name":"NAME","arguments":"{}"}`, `{"type":"custom_tool_call","call_id":"a","name":"NAME","input":""}`},
		session.Anthropic:       {`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"NAME","input":{}}]}`},
		session.Gemini: {`{"role":"model","parts":[{"functionCall":{"id":"a","name":"NAME","args":{}},"thoughtSignature":"s"}]}`, `{"role":"model","parts":[{"function_call":{"name":"NAME","args":{}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"NAME","response":{}}}]}`},
		session.AISDK: {`{"id":"m","role":"assistant","parts":[{"type":"tool-NAME","toolCallId":"a","state":"input-available","input":{}}]}`,
			`{"id":"m","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"NAME","toolCallId":"a","state":"input-available","input":{},"providerExecuted":true}]}`},
	} {
		for _, body := range bodies {
			for name, want := range map[string]bool{"f": false, "": true, "a/b": f != session.AISDK, strings.Repeat("n", 129): f != session.AISDK} {
				shape := wire.ShapeOfBody(f, []byte(strings.ReplaceAll(body, "NAME", name)))
				if got := shape.Flags&wire.FlagMayNeedRepair != 0; got != want {
					t.Errorf("%s: %q may need repair: %t\n%s", f, name, got, body)
				}
			}
		}
	}
}

// TestC13TheNameOfASpeakerIsANote loses nothing of a name that Chat Completions refuses.
func TestC13TheNameOfASpeakerIsANote(t *testing.T) {
	t.Parallel()
	view := storedOf(session.OpenAIChat, []string{
		`{"role":"system","name":"the boss","content":"s"}`, `{"role":"user","name":"Eve Miller","content":"u"}`, `{"role":"assistant","name":"ok","content":"a"}`,
		`{"role":"user","name":"","content":"u"}`,
	})
	made := wiretest.Render(session.OpenAIChat, view, wire.Options{})
	want := []string{
		`{"role":"system","content":[{"type":"text","text":"[From the boss]"},{"type":"text","text":"s"}]}`,
		`{"role":"user","content":[{"type":"text","text":"[From Eve Miller]"},{"type":"text","text":"u"}]}`, `{"role":"assistant","name":"ok","content":"a"}`,
		`{"role":"user","content":"u"}`,
	}
	if diff := cmp.Diff(want, strs(made.Bodies)); diff != "" || kindsOf(made.Repairs)["speaker_as_note"] != 3 {
		t.Errorf("repairs %v (-want +got):\n%s", made.Repairs, diff)
	}
}

func strs(bodies [][]byte) (list []string) {
	for _, body := range bodies {
		list = append(list, string(body))
	}
	return list
}

// renameRandomly gives a tool of a conversation one of the strange names, in some of them, and a speaker one.
func renameRandomly(rng *rand.Rand, bodies [][]byte) [][]byte {
	if rng.IntN(3) > 0 {
		return bodies
	}
	literal := rawjson.Quote(nil, []byte(strangeNames[rng.IntN(len(strangeNames))]))
	tool := []string{"Read", "Grep", "Bash"}[rng.IntN(3)]
	out := make([][]byte, len(bodies))
	for i, body := range bodies {
		body = bytes.ReplaceAll(body, []byte(`"`+tool+`"`), literal)
		body = bytes.ReplaceAll(body, []byte(`"tool-`+tool+`"`), append([]byte(`"tool-`), literal[1:]...))
		if rng.IntN(8) == 0 {
			body = bytes.Replace(body, []byte(`{"role":"user",`), append(append([]byte(`{"role":"user","name":`), literal...), ','), 1)
		}
		out[i] = body
	}
	return out
}
