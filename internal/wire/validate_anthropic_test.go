package wire

import "strings"

func uses(ids ...string) string {
	return `{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{},"id":"` + strings.Join(ids, `"},{"type":"tool_use","name":"f","input":{},"id":"`) + `"}]}`
}

func toolResults(ids ...string) string {
	return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + strings.Join(ids, `"},{"type":"tool_result","tool_use_id":"`) + `"}]}`
}

func says(role string, blocks ...string) string {
	return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
}

func useOf(id string) string { return `{"type":"tool_use","id":"` + id + `","name":"f","input":{}}` }

const (
	signed   = `{"type":"thinking","thinking":"hm","signature":"s"}`
	unsigned = `{"type":"thinking","thinking":"hm"}`

	toolAdded     = `{"type":"tool_addition","tool":{"type":"tool_reference","name":"f"},"cache_control":{"type":"ephemeral"}}`
	toolWithdrawn = `{"type":"tool_removal","tool":{"type":"mcp_tool_reference","server_name":"s","name":"g"},"cache_control":{"type":"ephemeral"}}`
	redacted      = `{"type":"redacted_thinking","data":"d"}`
	block         = `{"type":"text","text":"x"}`
	use           = `{"type":"tool_use","id":"a","name":"f","input":{}}`
	hour          = `{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}`
	marked        = `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
)

const setsLow = `{"role":"system","content":[],"output_config":{"effort":"low"}}`

var refuses = Options{Model: "us.anthropic.claude-opus-4-6-v1:0"}

var anthropicFixtures = []fixture{
	{"V-A1", "calls and results in any order inside a turn", Options{}, []string{someSystem, someUser, uses("a", "b"), toolResults("b", "a"), someDone}, nil},
	{"V-A1", "messages of one role are one turn", Options{}, []string{someUser, uses("a"), uses("b"), toolResults("a"), toolResults("b"), someUser, someDone}, nil},
	{"V-A1", "the last unit is in flight", Options{}, []string{someUser, uses("a", "b")}, nil},
	{"V-A1", "the last unit is half answered", Options{}, []string{someUser, uses("a", "b"), toolResults("a")}, nil},
	{"V-A1", "the last unit is in flight where its calls are to be settled", Options{Pending: SynthesizePending}, []string{someUser, uses("a")}, []string{"V-A1 1"}},
	{"V-A1", "a call without a result in the next message", Options{}, []string{someUser, uses("a", "b"), toolResults("a"), someDone}, []string{"V-A1 1"}},
	{"V-A1", "a call passed over by text", Options{}, []string{someUser, uses("a"), someUser}, []string{"V-A1 1"}},
	{"V-A1", "a half answered unit that the user goes on from", Options{}, []string{someUser, uses("a", "b"), toolResults("a"), someUser}, []string{"V-A1 1"}},
	{"V-A1", "a call of the user's", Options{}, []string{says("user", use)}, []string{"V-A1 0"}},
	{"V-A2", "a result of the turn before", Options{}, []string{someUser, uses("a"), toolResults("a")}, nil},
	{"V-A2", "a result without a call", Options{}, []string{someUser, someDone, toolResults("a"), someDone}, []string{"V-A2 2"}},
	{"V-A2", "a result of a call further back", Options{}, []string{someUser, uses("a"), someUser, someDone, toolResults("a")}, []string{"V-A1 1", "V-A2 4"}},
	{"V-A2", "a result of the assistant's", Options{}, []string{someUser, says("assistant", `{"type":"tool_result","tool_use_id":"a"}`), someUser}, []string{"V-A2 1", "V-A2 1"}},
	{"V-A3", "text behind the results", Options{}, []string{someUser, uses("a"), toolResults("a"), someUser}, nil},
	{"V-A3", "a result behind text", Options{}, []string{someUser, uses("a"), someUser, toolResults("a")}, []string{"V-A3 3"}},
	{"V-A3", "a result behind text of its message", Options{}, []string{someUser, uses("a"), says("user", block, `{"type":"tool_result","tool_use_id":"a"}`)}, []string{"V-A3 2"}},
	{"V-A4", "letters, digits, _ and -", Options{}, []string{someUser, uses("aZ09_-"), toolResults("aZ09_-")}, nil},
	{"V-A4", "an id twice", Options{}, []string{someUser, uses("a"), toolResults("a"), uses("a"), toolResults("a")}, []string{"V-A4 3"}},
	{"V-A4", "two results of one call", Options{}, []string{someUser, uses("a"), toolResults("a", "a")}, []string{"V-A4 2"}},
	{"V-A4", "an id of other characters", Options{}, []string{someUser, uses("a.b"), toolResults("a.b")}, []string{"V-A4 1"}},
	{"V-A4", "an id of 64 characters", Options{}, []string{someUser, uses(longID[:64]), toolResults(longID[:64])}, nil},
	{"V-A4", "an id of 65 characters", Options{}, []string{someUser, uses(longID), toolResults(longID)}, []string{"V-A4 1"}},
	{"V-A4", "an empty id", Options{}, []string{someUser, uses(""), toolResults("")}, []string{"V-A4 1"}},
	{"V-A5", "an empty final assistant message", Options{}, []string{someUser, `{"role":"assistant","content":""}`}, nil},
	{"V-A5", "an empty result", Options{}, []string{someUser, uses("a"), says("user", `{"type":"tool_result","tool_use_id":"a","content":""}`)}, nil},
	{"V-A5", "an empty head", Options{}, []string{`{"role":"system","content":""}`, someUser}, nil},
	{"V-A5", "an empty text", Options{}, []string{says("user", `{"type":"text","text":""}`, block)}, []string{"V-A5 0"}},
	{"V-A5", "a text of white space", Options{}, []string{says("user", `{"type":"text","text":" \n"}`, block)}, []string{"V-A5 0"}},
	{"V-A5", "an empty message", Options{}, []string{`{"role":"user","content":[]}`, someDone}, []string{"V-A5 0"}},
	{"V-A5", "an empty assistant message before the end", Options{}, []string{someUser, `{"role":"assistant","content":""}`, someUser}, []string{"V-A5 1"}},
	{"V-A6", "a model that takes prefill", Options{Model: "claude-opus-4-5-20251101"}, []string{someUser, someDone}, nil},
	{"V-A6", "a model that is not known", Options{}, []string{someUser, someDone}, nil},
	{"V-A6", "the user is last", refuses, []string{someUser, someDone, someUser}, nil},
	{"V-A6", "calls in flight are last", refuses, []string{someUser, uses("a")}, nil},
	{"V-A6", "text behind a call in flight", refuses, []string{someUser, says("assistant", use, `{"type":"text","text":"so "}`)}, nil},
	{"V-A6", "a turn that the provider stopped", refuses, []string{someUser, says("assistant", block, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`)}, nil},
	{"V-A6", "white space inside of a conversation", Options{}, []string{someUser, `{"role":"assistant","content":"done\n"}`, someUser}, nil},
	{"V-A6", "the user's white space", Options{}, []string{`{"role":"user","content":"u "}`}, nil},
	{"V-A6", "nothing but the head", refuses, []string{someSystem}, []string{"V-A10 0"}},
	{"V-A6", "a model that refuses prefill", refuses, []string{someUser, someDone}, []string{"V-A6 1"}},
	{"V-A6", "a newer model", Options{Model: "anthropic/claude-sonnet-5"}, []string{someUser, someDone}, []string{"V-A6 1"}},
	{"V-A6", "a final text that ends in white space", Options{}, []string{someUser, `{"role":"assistant","content":"done\n"}`}, []string{"V-A6 1"}},
	{"V-A6", "thinking at the end of a turn that the user answers", Options{}, []string{someUser, says("assistant", signed), someUser}, []string{"V-A6 1"}},
	{"V-A6", "thinking behind a text that the user answers", Options{Model: "claude-opus-4-6"}, []string{someUser, says("assistant", block, redacted), someUser}, []string{"V-A6 1"}},
	{"V-A6", "thinking before a call in the next message", Options{}, []string{someUser, says("assistant", signed), uses("a"), toolResults("a"), someUser}, nil},
	{"V-A6", "thinking behind calls that are answered", Options{}, []string{someUser, says("assistant", use, signed), toolResults("a"), someUser}, nil},
	{"V-A6", "thinking alone for a server that wants it", Options{Model: "deepseek-v4-pro", Dialect: "deepseek"}, []string{someUser, says("assistant", `{"type":"thinking","thinking":"hm"}`), someUser}, nil},
	{"V-A6", "thinking behind calls in flight", Options{}, []string{someUser, says("assistant", use, signed)}, nil},
	{"V-A6", "nothing but thinking at the end", Options{Model: "claude-haiku-4-5"}, []string{someUser, says("assistant", signed)}, []string{"V-A6 1"}},
	{"V-A6", "redacted thinking behind a text at the end", Options{}, []string{someUser, says("assistant", block, redacted)}, []string{"V-A6 1"}},
	{"V-A10", "the user is first", Options{}, []string{someSystem, someUser}, nil},
	{"V-A10", "a compaction with content", Options{}, []string{someUser, says("assistant", `{"type":"compaction","content":null,"encrypted_content":"e"}`), someUser}, nil},
	{"V-A10", "100,000 messages", Options{}, manyUsers(100_000), nil},
	{"V-A10", "the assistant is first", Options{}, []string{someSystem, someDone, someUser}, []string{"V-A10 1"}},
	{"V-A10", "nothing but the head", Options{}, []string{someSystem, someSystem}, []string{"V-A10 1"}},
	{"V-A10", "a compaction without content", Options{}, []string{someUser, says("assistant", `{"type":"compaction","content":""}`), someUser}, []string{"V-A10 1"}},
	{"V-A10", "100,001 messages", Options{}, manyUsers(100_001), []string{"V-A10 100000"}},
	{"V-A11", "it is not known which tools there are", Options{}, []string{someUser, uses("a"), toolResults("a")}, nil},
	{"V-A11", "any tool will do", Options{Tools: []string{"g"}}, []string{someUser, uses("a"), toolResults("a")}, nil},
	{"V-A11", "no tools and no calls", Options{Tools: []string{}}, []string{someUser}, nil},
	{"V-A11", "calls without tools", Options{Tools: []string{}}, []string{someUser, uses("a"), toolResults("a")}, []string{"V-A11 1"}},
	{"V-A12", "the system is first", Options{}, []string{someSystem, `{"role":"developer","content":"d"}`, someUser}, nil},
	{"V-A12", "the system in the middle", Options{}, []string{someUser, someSystem, someUser}, []string{"V-A12 1"}},
	{"V-A12", "the system behind the user, for a model that takes it", Options{Model: "claude-opus-4-8"}, []string{someUser, someSystem, someDone, someUser, someSystem}, nil},
	{"V-A12", "the system behind results", Options{Model: "anthropic/claude-fable-5.1"}, []string{someUser, uses("a"), toolResults("a"), someSystem, someDone, someUser}, nil},
	{"V-A12", "the system behind the assistant", Options{Model: "claude-opus-5-5"}, []string{someUser, someDone, someSystem, someUser}, []string{"V-A12 2"}},
	{"V-A12", "the system before the user", Options{Model: "claude-opus-5-5"}, []string{someUser, someSystem, someUser}, []string{"V-A12 1"}},
	{"V-A12", "the system twice", Options{Model: "claude-opus-5-5"}, []string{someUser, someSystem, someSystem, someDone, someUser}, []string{"V-A12 1", "V-A12 2"}},
	{"V-A12", "an image of the system", Options{Model: "claude-opus-5-5"}, []string{someUser, says("system", block, `{"type":"image","source":{"type":"url","url":"https://a.b/c.png"}}`), someDone, someUser}, []string{"V-A12 1"}},
	{"V-A12", "a tool is added and another withdrawn", Options{Model: "claude-opus-5-5"}, []string{someUser, says("system", toolAdded, block, toolWithdrawn), someDone, someUser, says("system", toolWithdrawn)}, nil},
	{"V-A12", "the system in the middle at Bedrock", Options{Model: "us.anthropic.claude-opus-4-8-v1:0"}, []string{someUser, someSystem, someDone, someUser}, []string{"V-A12 1"}},
	{"V-A12", "the system in the middle for Sonnet 4.6", Options{Model: "claude-sonnet-4-6"}, []string{someUser, someSystem, someDone, someUser}, []string{"V-A12 1"}},
	{"V-A12", "a setting alone, anywhere", Options{Model: "claude-opus-5-5"}, []string{someUser, setsLow, someDone, setsLow, setsLow, someUser, setsLow}, nil},
	{"V-A12", "a setting beside a text", Options{Model: "claude-opus-5-5"}, []string{someUser, someSystem, setsLow, someDone, someUser}, []string{"V-A12 1", "V-A12 2"}},
	{"V-A12", "a setting for Sonnet 4.6", Options{Model: "claude-sonnet-4-6"}, []string{someUser, setsLow, someDone, someUser}, []string{"V-A12 1"}},
	{"V-A12", "the system behind a call of the API's tool", Options{Model: "claude-opus-5-5"}, []string{someUser, says("assistant", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), someSystem}, nil},
	{"V-C5", "both roles", Options{}, []string{someSystem, someUser, someDone}, nil},
	{"V-C5", "a role of another format", Options{}, []string{someUser, `{"role":"tool","content":"x"}`}, []string{"V-C5 1"}},
}

var anthropicBlockFixtures = []fixture{
	{"V-A7", "thinking with a signature, and redacted", Options{}, []string{someUser, says("assistant", signed, redacted, block, use), toolResults("a"), says("assistant", signed, block)}, nil},
	{"V-A7", "thinking whose text is kept back", Options{}, []string{someUser, says("assistant", `{"type":"thinking","thinking":"","signature":"s"}`, block)}, nil},
	{"V-A7", "thinking between and behind calls", Options{}, []string{someUser, says("assistant", signed, use, redacted, block, signed, useOf("b"), signed), toolResults("a", "b"), says("assistant", signed, block)}, nil},
	{"V-A7", "thinking behind a call of the latest turn", Options{}, []string{someUser, says("assistant", use, signed), toolResults("a")}, nil},
	{"V-A7", "thinking behind a call of the message before", Options{}, []string{someUser, says("assistant", use), says("assistant", signed), toolResults("a")}, nil},
	{"V-A7", "thinking without a signature", Options{}, []string{someUser, says("assistant", unsigned, block), someUser}, []string{"V-A7 1"}},
	{"V-A7", "thinking of DeepSeek without a signature", Options{Model: "deepseek-v4-pro"}, []string{someUser, says("assistant", unsigned, use), toolResults("a"), says("assistant", unsigned, block), someUser}, nil},
	{"V-A7", "thinking of Kimi with an empty signature", Options{Model: "kimi-for-coding"}, []string{someUser, says("assistant", `{"type":"thinking","thinking":"hm","signature":""}`, block), someUser}, nil},
	{"V-A7", "an empty signature", Options{}, []string{someUser, says("assistant", `{"type":"thinking","thinking":"hm","signature":""}`, block), someUser}, []string{"V-A7 1"}},
	{"V-A7", "redacted thinking without data", Options{}, []string{someUser, says("assistant", `{"type":"redacted_thinking"}`, block), someUser}, []string{"V-A7 1"}},
	{"V-A8", "the model's own thinking", Options{Model: "anthropic/claude-opus-4-5", Author: "claude-opus-4-5"}, []string{someUser, says("assistant", signed, block), someUser}, nil},
	{"V-A8", "it is not known who thought", Options{Model: "claude-opus-4-5"}, []string{someUser, says("assistant", signed, block), someUser}, nil},
	{"V-A8", "another model's words", Options{Model: "claude-opus-4-5", Author: "claude-sonnet-4-5"}, []string{someUser, someDone, someUser}, nil},
	{"V-A8", "another model's thinking", Options{Model: "claude-opus-4-5", Author: "claude-sonnet-4-5"}, []string{someUser, says("assistant", signed, block), someUser}, []string{"V-A8 1"}},
	{"V-A9", "four marks", Options{}, []string{says("system", marked), says("user", marked, marked, block), says("assistant", marked), someUser}, nil},
	{"V-A9", "a mark that is null", Options{}, []string{says("user", marked, marked, marked, marked, `{"type":"text","text":"x","cache_control":null}`)}, nil},
	{"V-A9", "five marks", Options{}, []string{says("system", marked), says("user", marked, marked), says("assistant", marked), says("user", marked, marked)}, []string{"V-A9 3"}},
	{"V-A9", "marks inside of a result", Options{}, []string{someUser, uses("a"), says("user", `{"type":"tool_result","tool_use_id":"a","cache_control":{},"content":[`+strings.Repeat(marked+",", 3)+marked+`]}`)}, []string{"V-A9 2"}},
	{"V-A9", "an hour before five minutes", Options{}, []string{says("system", hour), says("user", hour, marked), someUser}, nil},
	{"V-A9", "an hour behind five minutes", Options{}, []string{says("system", marked), says("user", hour), someUser}, []string{"V-A9 1"}},
	{"V-A9", "an hour behind five minutes in one message", Options{}, []string{says("user", `{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"5m"}}`, hour), someUser}, []string{"V-A9 0"}},
	{"V-A9", "an hour on a result of which a text has five minutes", Options{}, []string{someUser, uses("a"), says("user", `{"type":"tool_result","tool_use_id":"a","cache_control":{"type":"ephemeral","ttl":"1h"},"content":[`+marked+`]}`)}, []string{"V-A9 2"}},
	{"V-A9", "an hour in a result before five minutes on it", Options{}, []string{someUser, uses("a"), says("user", `{"type":"tool_result","tool_use_id":"a","cache_control":{"type":"ephemeral"},"content":[`+hour+`]}`)}, nil},
	{"V-A9", "a mark on an empty text", Options{}, []string{says("user", `{"type":"text","text":"","cache_control":{}}`, block)}, []string{"V-A5 0", "V-A9 0"}},
}

func manyUsers(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = someUser
	}
	return list
}

// longID has 65 characters, one more than an id of Anthropic's may have.
var longID = strings.Repeat("a", 65)
