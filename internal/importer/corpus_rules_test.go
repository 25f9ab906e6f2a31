package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// recorded is a file of the corpus: its entry in the index, its content, and what was read.
type recorded struct {
	t    *testing.T
	want indexed
	data []byte
	file *File
	got  measured
}

// rule explains why files of a format are not counted as the index counts them. docs/import.md has them in
// words.
type rule struct {
	formats string // of the index, separated by spaces
	why     string
	less    func(r recorded) counts // by how much our counts are less than the index'
}

var rules = []rule{
	{
		"claude_code_jsonl pi_jsonl", "results of parallel calls are one message, with what a person typed beside them",
		func(r recorded) counts { return counts{Messages: r.got.Results - r.got.answers + r.got.beside} },
	},
	{
		"claude_code_jsonl", "what no model wrote is skipped",
		func(r recorded) counts {
			return counts{Messages: r.count(func(o map[string]any) bool {
				m, _ := o["message"].(map[string]any)
				return o["type"] == "assistant" && (m["model"] == "<synthetic>" || o["isApiErrorMessage"] == true)
			})}
		},
	},
	{
		"claude_code_jsonl", "what only the progress of a subagent has is a conversation",
		func(r recorded) counts { return counts{}.minus(r.progressed()) },
	},
	{
		"claude_code_jsonl", "what was not gone on with is another branch",
		func(r recorded) counts { return counts{Messages: r.file.Report.Skipped[string(anotherBranch)]} },
	},
	{
		"claude_code_jsonl", "what was typed while Claude worked, and only the queue has, is a message",
		func(r recorded) counts { return counts{Messages: -len(queuedAlone(r.data))} },
	},
	{
		"pi_jsonl", "a command that a person ran is a message, for the index a call and a result",
		func(r recorded) counts {
			n := r.count(func(o map[string]any) bool { return o["role"] == "bashExecution" })
			return counts{Messages: n, Calls: n, Results: n}
		},
	},
	{
		"pi_jsonl", "an empty turn that ended in an error is skipped",
		func(r recorded) counts {
			return counts{Messages: r.count(func(o map[string]any) bool {
				content, isList := o["content"].([]any)
				return o["role"] == "assistant" && o["stopReason"] == "error" && isList && len(content) == 0
			})}
		},
	},
	{
		"pi_jsonl", "what an extension tells the model is a message",
		func(r recorded) counts {
			return counts{Messages: -r.count(func(o map[string]any) bool { return o["type"] == "custom_message" })}
		},
	},
	{
		"gemini_cli_session", "what the interface says is skipped",
		func(r recorded) counts { return counts{Messages: r.skipped()} },
	},
	{
		"codex_rollout_jsonl", "a ghost_snapshot is skipped",
		func(r recorded) counts { return counts{Messages: r.items("ghost_snapshot")} },
	},
	{
		"codex_rollout_jsonl openai_responses_exchange openai_responses_response", "calls that the provider makes and answers itself are no calls",
		func(r recorded) counts {
			answered := r.items("mcp_call", "tool_search_output")
			calls := r.items(
				"mcp_call", "tool_search_call", "code_interpreter_call", "web_search_call", "file_search_call",
				"image_generation_call",
			)
			return counts{Messages: r.items("mcp_call"), Calls: calls, Results: answered, Open: calls - answered}
		},
	},
	{
		"anthropic_exchange anthropic_response", "calls that the provider makes and answers itself are no calls",
		func(r recorded) counts {
			calls, results := r.types("server_tool_use", "mcp_tool_use"), r.count(answeredByProvider)
			messages := r.count(func(o map[string]any) bool {
				blocks, _ := o["content"].([]any)
				return o["role"] == "assistant" && len(matching(blocks, answeredByProvider)) > 0
			})
			return counts{Messages: messages, Calls: calls, Results: results, Open: calls - results}
		},
	},
	{
		"llm_request_log", "the index counts the last request; the log also has the last response, and what later requests leave out",
		func(r recorded) counts { return r.lastRequest().minus(r.got.counts) },
	},
	{
		"tau2_bench", "what the simulated user's tools are asked and answer is skipped",
		func(r recorded) counts {
			calls := r.count(func(o map[string]any) bool { return o["requestor"] == "user" && o["arguments"] != nil })
			results := r.count(func(o map[string]any) bool { return o["requestor"] == "user" && o["role"] == "tool" })
			return counts{Messages: r.skipped(), Calls: calls, Results: results}
		},
	},
	{
		"agent_framework", "a message of several results is one for each",
		func(r recorded) counts {
			messages := r.count(func(o map[string]any) bool {
				role, _ := o["role"].(map[string]any)
				return role["value"] == "tool"
			})
			return counts{Messages: messages - r.got.Results}
		},
	},
	{
		"openai_chat", "actions and observations in texts are calls and results",
		func(r recorded) counts {
			n := r.count(func(o map[string]any) bool {
				blocks, _ := json.Marshal(o["content"])
				return o["role"] == "user" && bytes.Contains(blocks, []byte(`"EXECUTION RESULT of [`))
			})
			return counts{Calls: -n, Results: -n}
		},
	},
	{
		"openhands_events", "what was recalled is skipped",
		func(r recorded) counts {
			return counts{Messages: r.count(func(o map[string]any) bool { return o["observation"] == "recall" })}
		},
	},
	{
		"openhands_events", "an error about an answer that could not be understood is what the user says, not the result of a call",
		func(r recorded) counts {
			return counts{
				Results: r.count(
					func(o map[string]any) bool { return o["observation"] == "error" && o["tool_call_metadata"] == nil },
				),
			}
		},
	},
	{
		"cline_session", "the system prompt is a message",
		func(r recorded) counts {
			return counts{Messages: -r.count(func(o map[string]any) bool { return o["system_prompt"] != nil })}
		},
	},
	{
		"aisdk_ui_stream", "a UIMessage has all its steps and the results of its calls in it",
		func(r recorded) counts { return counts{Messages: r.want.Messages - r.streamed()} },
	},
}

func answeredByProvider(o map[string]any) bool {
	kind, _ := o["type"].(string)
	return strings.HasSuffix(kind, "_tool_result")
}

func (r recorded) skipped() int {
	sum := 0
	for _, n := range r.file.Report.Skipped {
		sum += n
	}
	return sum
}

// types counts the objects of these types.
func (r recorded) types(names ...string) int {
	wanted := set(names...)
	return r.count(func(o map[string]any) bool {
		name, _ := o["type"].(string)
		return wanted[name]
	})
}

// items counts the Responses items of these types, in a rollout without the copies that other records have of them.
func (r recorded) items(names ...string) int {
	if r.want.Format != "codex_rollout_jsonl" {
		return r.types(names...)
	}
	wanted := set(names...)
	return r.count(func(o map[string]any) bool {
		payload, _ := o["payload"].(map[string]any)
		name, _ := payload["type"].(string)
		return o["type"] == "response_item" && wanted[name]
	})
}

// count counts the objects that match, wherever they are in the file.
func (r recorded) count(match func(o map[string]any) bool) int {
	n := 0
	for _, value := range r.values() {
		n += len(matching([]any{value}, match))
	}
	return n
}

// values returns the JSON values of the file up to the first that is invalid, read without the package's readers.
func (r recorded) values() []any {
	var list []any
	decoder := json.NewDecoder(bytes.NewReader(r.data))
	for {
		var value any
		if decoder.Decode(&value) != nil {
			return list
		}
		list = append(list, value)
	}
}

// matching returns the objects that match in values and in all that they hold.
func matching(values []any, match func(o map[string]any) bool) []map[string]any {
	var found []map[string]any
	for _, value := range values {
		switch v := value.(type) {
		case []any:
			found = append(found, matching(v, match)...)
		case map[string]any:
			if match(v) {
				found = append(found, v)
			}
			for _, member := range v {
				found = append(found, matching([]any{member}, match)...)
			}
		}
	}
	return found
}

// lastRequest counts what the log's last request holds.
func (r recorded) lastRequest() counts {
	var last []byte
	for _, line := range bytes.Split(r.data, []byte("\n")) {
		if parseArray(parseObject(parseObject(line)["request_params"])["messages"]) != nil {
			last = line
		}
	}
	f, err := Read(context.Background(), "last", parseObject(last)["request_params"], Auto)
	if err != nil {
		r.t.Fatalf("%s: %v", r.want.File, err)
	}
	return measure(r.t, f).counts
}

// streamed counts the UIMessages of a stream: one for each chunk that starts one which gets a part. An interrupt ends a
// message, and what comes after it is another.
func (r recorded) streamed() int {
	n, open := 0, false
	all := r.values()
	if list, ok := all[0].([]any); ok {
		all = list
	}
	for _, value := range all {
		chunk, _ := value.(map[string]any)
		switch kind, _ := chunk["type"].(string); kind {
		case "start":
			open = false
		case "finish", "finish-step", "abort", "error", "message-metadata":
		default:
			if transient := chunk["transient"] == true; !open && !transient {
				n, open = n+1, true
			}
		}
	}
	return n
}

// progressed counts what the progress of subagents has that have no records of their own: an assistant message for each
// API id, a user message for each record.
func (r recorded) progressed() (n counts) {
	ids, own := map[any]bool{}, map[any]bool{}
	for _, o := range matching(r.values(), func(o map[string]any) bool { return o["isSidechain"] == true }) {
		own[o["agentId"]] = true
	}
	for _, o := range matching(r.values(), func(o map[string]any) bool { return o["type"] == "agent_progress" }) {
		said, _ := o["message"].(map[string]any)
		m, _ := said["message"].(map[string]any)
		if own[o["agentId"]] || m == nil {
			continue
		}
		if id := m["id"]; id == nil || !ids[id] {
			ids[id] = true
			n.Messages++
		}
		blocks, _ := m["content"].([]any)
		n.Calls += len(matching(blocks, func(o map[string]any) bool { return o["type"] == "tool_use" }))
		n.Results += len(matching(blocks, func(o map[string]any) bool { return o["type"] == "tool_result" }))
	}
	return n
}

// queuedAlone returns the prompts that Claude Code's queue gave to the model, and no message has.
func queuedAlone(data []byte) (alone []json.RawMessage) {
	var waiting []json.RawMessage
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		var o struct {
			Type, Operation string
			Content         json.RawMessage
		}
		if json.Unmarshal(line, &o) != nil || o.Type != "queue-operation" {
			continue
		}
		switch {
		case o.Operation == "enqueue":
			waiting = append(waiting, o.Content)
		case len(waiting) > 0:
			prompt := waiting[0]
			waiting = waiting[1:]
			said := bytes.Contains(data, append([]byte(`"role":"user","content":`), prompt...)) ||
				bytes.Contains(data, append([]byte(`"type":"text","text":`), prompt...))
			if !said {
				alone = append(alone, prompt)
			}
		}
	}
	return alone
}
