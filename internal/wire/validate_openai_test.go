package wire

import (
	"strings"
)

const (
	someSystem = `{"role":"system","content":"s"}`
	someUser   = `{"role":"user","content":"u"}`
	someDone   = `{"role":"assistant","content":"done"}`
)

func chatCalls(ids ...string) string {
	return `{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"},"id":"` +
		strings.Join(ids, `"},{"type":"function","function":{"name":"f","arguments":"{}"},"id":"`) + `"}]}`
}

func chatTool(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"r"}` }

var (
	forty       = strings.Repeat("c", 40)
	mistralAsks = Options{Model: "mistral/mistral-large-2411"}
)

var chatFixtures = []fixture{
	{"V-C1", "calls and results in any order inside a unit", Options{}, []string{someSystem, someSystem, someUser, chatCalls("a", "b"), chatTool("b"), chatTool("a"), someDone}, nil},
	{"V-C1", "ids repeat", Options{}, []string{chatCalls("a", "a"), chatTool("a"), chatTool("a"), chatCalls("a"), chatTool("a")}, nil},
	{"V-C1", "the last unit is in flight", Options{}, []string{someUser, chatCalls("a", "b"), chatTool("a")}, nil},
	{"V-C1", "the last unit is in flight where its calls are to be settled", Options{Pending: SynthesizePending}, []string{someUser, chatCalls("a", "b"), chatTool("a")}, []string{"V-C1 1"}},
	{"V-C1", "a call without a result before another role", Options{}, []string{chatCalls("a", "b"), chatTool("a"), someUser, someDone}, []string{"V-C1 0"}},
	{"V-C1", "a late result", Options{}, []string{chatCalls("a"), someUser, chatTool("a")}, []string{"V-C1 0", "V-C2 2"}},
	{"V-C1", "a call that the assistant passes over", Options{}, []string{someUser, chatCalls("a"), someDone}, []string{"V-C1 1"}},
	{"V-C2", "legacy calls are paired", Options{}, []string{`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"r"}`, someUser}, nil},
	{"V-C2", "a result without a call", Options{}, []string{someUser, chatTool("a"), someDone}, []string{"V-C2 1"}},
	{"V-C2", "a second result", Options{}, []string{chatCalls("a"), chatTool("a"), chatTool("a")}, []string{"V-C2 2"}},
	{"V-C3", "an empty string is content", Options{}, []string{`{"role":"assistant","content":""}`}, nil},
	{"V-C3", "null is content of a message with calls", Options{}, []string{chatCalls("a"), chatTool("a")}, nil},
	{"V-C3", "an array of texts is a result", Options{}, []string{chatCalls("a"), `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}`}, nil},
	{"V-C3", "an assistant's message without content and calls", Options{}, []string{someUser, `{"role":"assistant","content":null}`}, []string{"V-C3 1"}},
	{"V-C3", "a user's message without content", Options{}, []string{`{"role":"user"}`}, []string{"V-C3 0"}},
	{"V-C3", "a system message without content", Options{}, []string{`{"role":"system","content":null}`, someUser}, []string{"V-C3 0"}},
	{"V-C3", "a result without content", Options{}, []string{chatCalls("a"), `{"role":"tool","tool_call_id":"a","content":null}`}, []string{"V-C3 1"}},
	{"V-C3", "arrays without parts", Options{}, []string{`{"role":"assistant","content":[]}`, chatCalls("a"), `{"role":"tool","tool_call_id":"a","content":[]}`}, []string{"V-C3 0", "V-C3 2"}},
	{"V-C3", "an array without parts beside calls", Options{}, []string{someUser, strings.Replace(chatCalls("a"), "null", "[]", 1), chatTool("a")}, []string{"V-C3 1"}},
	{"V-C3", "an image as a result", Options{}, []string{chatCalls("a"), `{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"https://a.b/c.png"}}]}`}, []string{"V-C3 1"}},
	{"V-C4", "an id of 40 characters", Options{}, []string{chatCalls(forty), chatTool(forty)}, nil},
	{"V-C4", "forty characters of two bytes", Options{}, []string{chatCalls(strings.Repeat("é", 40)), chatTool(strings.Repeat("é", 40))}, nil},
	{"V-C4", "the name of a legacy call is no id", Options{}, []string{`{"role":"assistant","content":null,"function_call":{"name":"` + forty + `","arguments":"{}"}}`, `{"role":"function","name":"` + forty + `","content":"r"}`}, nil},
	{"V-C4", "an id of 41 characters", Options{}, []string{chatCalls(forty + "c"), chatTool(forty + "c")}, []string{"V-C4 0", "V-C4 1"}},
	{"V-C5", "all roles", Options{}, []string{`{"role":"developer","content":"d"}`, someUser, someSystem, `{"role":"developer","content":"d"}`, chatCalls("a"), chatTool("a"),
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"r"}`}, nil},
	{"V-C5", "a role of one agent's own", Options{}, []string{someUser, `{"role":"exit","content":"x"}`}, []string{"V-C5 1"}},
	{"V-M1", "nine letters and digits", mistralAsks, []string{someUser, chatCalls("aB3456789"), chatTool("aB3456789")}, nil},
	{"V-M1", "the user is last", mistralAsks, []string{someUser, someDone, someUser}, nil},
	{"V-M1", "calls in flight are last", mistralAsks, []string{someUser, chatCalls("aB3456789")}, nil},
	{"V-M1", "the model is to go on with the last message", mistralAsks, []string{someUser, `{"role":"assistant","content":"It ","prefix":true}`}, nil},
	{"V-M1", "nothing but the head", mistralAsks, []string{someSystem}, []string{"V-M1 0"}},
	{"V-M1", "a message without ids of its own", mistralAsks, []string{`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"r"}`}, []string{"V-D2 0", "V-D4 0", "V-D2 1"}},
	{"V-M1", "another provider's model", Options{Model: "gpt-4o"}, []string{someUser, chatCalls("call_1"), chatTool("call_1"), someDone}, nil},
	{"V-M1", "eight letters", mistralAsks, []string{chatCalls("abcdefgh"), chatTool("abcdefgh")}, []string{"V-M1 0", "V-M1 1"}},
	{"V-M1", "nine characters with another one", mistralAsks, []string{chatCalls("call_5678"), chatTool("call_5678")}, []string{"V-M1 0", "V-M1 1"}},
	{"V-M1", "the assistant is last", mistralAsks, []string{someUser, someDone}, []string{"V-M1 1"}},
}

const (
	userItem     = `{"type":"message","role":"user","content":[{"type":"input_text","text":"u"}]}`
	doneItem     = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"done","annotations":[]}]}`
	reasonedItem = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`

	reasonedAgain = `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"e"}`
)

func callItem(id string) string {
	return `{"type":"function_call","id":"fc_` + id[:min(len(id), 9)] + `","call_id":"` + id + `","name":"f","arguments":"{}"}`
}

func outputItem(id string) string {
	return `{"type":"function_call_output","call_id":"` + id + `","output":"r"}`
}

var (
	sixtyFour = strings.Repeat("c", 64)
)

var responsesFixtures = []fixture{
	{"V-R1", "an output behind its call", Options{}, []string{userItem, callItem("a"), outputItem("a"), doneItem}, nil},
	{"V-R1", "an output further on", Options{}, []string{userItem, callItem("a"), userItem, outputItem("a"), doneItem}, nil},
	{"V-R1", "a custom tool's output", Options{}, []string{userItem, `{"type":"custom_tool_call","call_id":"a","name":"patch","input":"x"}`, `{"type":"custom_tool_call_output","call_id":"a","output":"r"}`}, nil},
	{"V-R1", "an output without a call", Options{}, []string{userItem, outputItem("a")}, []string{"V-R1 1"}},
	{"V-R1", "an output before its call", Options{}, []string{userItem, outputItem("a"), callItem("a"), userItem}, []string{"V-R1 1", "V-R2 2"}},
	{"V-R1", "a second output", Options{}, []string{userItem, callItem("a"), outputItem("a"), outputItem("a")}, []string{"V-R1 3"}},
	{"V-R2", "calls and outputs in any order", Options{}, []string{userItem, callItem("a"), callItem("b"), outputItem("b"), outputItem("a")}, nil},
	{"V-R2", "the last calls are in flight", Options{}, []string{userItem, callItem("a"), callItem("b"), outputItem("a")}, nil},
	{"V-R2", "a message between call and output", Options{}, []string{userItem, callItem("a"), doneItem, outputItem("a")}, nil},
	{"V-R2", "the last calls are in flight where they are to be settled", Options{Pending: DropPending}, []string{userItem, callItem("a")}, []string{"V-R2 1"}},
	{"V-R2", "a call without an output before the user", Options{}, []string{userItem, callItem("a"), userItem}, []string{"V-R2 1"}},
	{"V-R2", "the last call, and the model's words behind it", Options{}, []string{userItem, callItem("a"), doneItem}, []string{"V-R2 1"}},
	{"V-R2", "the last call, and an item of the model without words behind it", Options{}, []string{userItem, callItem("a"), `{"type":"message","role":"assistant","content":[]}`}, []string{"V-R2 1"}},
	{"V-R2", "the last calls, and the model's words between them", Options{}, []string{userItem, callItem("a"), doneItem, callItem("b")}, []string{"V-R2 1"}},
	{"V-R2", "the last call, and a call that the API executes behind it", Options{},
		[]string{userItem, callItem("a"), `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`}, nil},
	{"V-R2", "a call that the model goes on from", Options{}, []string{userItem, callItem("a"), callItem("b"), outputItem("a"), doneItem}, []string{"V-R2 2"}},
	{"V-R3", "reasoning before a call and before a message", Options{}, []string{userItem, reasonedItem, callItem("a"), outputItem("a"), reasonedAgain, doneItem}, nil},
	{"V-R3", "reasoning that is in its item needs no ids", Options{}, []string{userItem, reasonedItem, `{"role":"assistant","content":"done"}`}, nil},
	{"V-R3", "reasoning twice", Options{}, []string{userItem, reasonedItem, reasonedAgain, doneItem}, nil},
	{"V-R3", "reasoning that is known by its id, before an item with one", Options{}, []string{userItem, `{"type":"reasoning","id":"rs_1","summary":[]}`, doneItem}, nil},
	{"V-R3", "reasoning at the end", Options{}, []string{userItem, reasonedItem}, []string{"V-R3 1"}},
	{"V-R3", "reasoning before the user", Options{}, []string{userItem, reasonedItem, userItem}, []string{"V-R3 1"}},
	{"V-R3", "reasoning before an output", Options{}, []string{userItem, callItem("a"), reasonedItem, outputItem("a"), userItem}, []string{"V-R3 2"}},
	{"V-R3", "reasoning that is known by its id, before an item without one", Options{}, []string{userItem, `{"type":"reasoning","id":"rs_1","summary":[]}`, `{"role":"assistant","content":"done"}`}, []string{"V-R3 1"}},
	{"V-R4", "an id of 64 characters", Options{}, []string{userItem, callItem(sixtyFour), outputItem(sixtyFour)}, nil},
	{"V-R4", "an id of 65 characters", Options{}, []string{userItem, callItem(sixtyFour + "c"), outputItem(sixtyFour + "c")}, []string{"V-R4 1", "V-R4 2"}},
	{"V-R4", "an empty id", Options{}, []string{userItem, callItem(""), outputItem("")}, []string{"V-R4 1", "V-R4 2"}},
	{"V-C5", "all roles", Options{}, []string{`{"role":"user","content":"u"}`, someSystem, `{"role":"developer","content":"d"}`, someDone, callItem("a"), outputItem("a"), `{"type":"compaction","encrypted_content":"e"}`}, nil},
	{"V-C5", "an item that is no message", Options{}, []string{userItem, `{"type":"additional_tools","role":"developer","tools":[]}`, userItem}, nil},
	{"V-C5", "a role of another format", Options{}, []string{userItem, `{"type":"message","role":"tool","content":"x"}`}, []string{"V-C5 1"}},
}
