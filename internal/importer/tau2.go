package importer

import "github.com/varve-dev/varve/internal/session"

// Tau2 is tau2-bench's simulations.
const Tau2 Source = "tau2"

// A simulation's messages become Chat Completions': arguments, which are objects, go into strings, and the id of a
// result is its tool_call_id. The simulated user has other tools, which the agent neither sees nor may call: the
// user's calls and their results are no part of the agent's conversation; the text beside a call is.
var tau2 = source{
	name:  Tau2,
	title: "tau2-bench's simulations",
	detect: func(s sample) bool {
		return s.object.has("simulations") || simulation(s.object) || simulation(s.first) || tau2Message(s.first)
	},
	read: readTau2,
}

func simulation(o object) bool {
	messages := parseArray(o["messages"])
	if messages == nil || !o.has("reward_info") && !o.has("termination_reason") {
		return false
	}
	return len(messages) == 0 || !parseObject(messages[0]).has("contents")
}

// tau2Message recognises a message by members that only tau2 gives all of them.
func tau2Message(o object) bool { return o.has("turn_idx") && o.has("role") }

func readTau2(f *File, id string, data []byte) error {
	if list := array(data); len(list) > 0 && tau2Message(parseObject(list[0])) {
		f.add(id, session.OpenAIChat, f.convert(f.elements(list), readTau2Message))
		return nil
	}
	for run := range f.runs(data) {
		for _, simulation := range within(run, "simulations") {
			f.add(id, session.OpenAIChat, f.convert(f.elements(f.list(simulation, "messages")), readTau2Message))
		}
	}
	return nil
}

func readTau2Message(e entry) ([][]byte, error) {
	role := e.text("role")
	switch {
	case role == "":
		return nil, errNoRole
	case role == "tool":
		return tau2Results(e)
	}
	m := chatMessage{role: role, content: e.object["content"]}
	if !isString(m.content) {
		m.content = nil
	}
	for _, raw := range parseArray(e.object["tool_calls"]) {
		call := parseObject(raw)
		if role == "assistant" && call.text("requestor") != "user" {
			m.calls = append(m.calls, chatCall(call["id"], call["name"], call["arguments"]))
		}
	}
	if body, ok := m.body(); ok {
		return [][]byte{body}, nil
	}
	if e.has("tool_calls") {
		return nil, skipped("call of the simulated user")
	}
	return nil, skipped(role + " without content")
}

// tau2Results reads a result, or several in one message.
func tau2Results(e entry) ([][]byte, error) {
	results := parseArray(e.object["tool_messages"])
	if results == nil {
		results = [][]byte{e.raw}
	}
	var bodies [][]byte
	for _, raw := range results {
		if o := parseObject(raw); o.text("requestor") != "user" {
			bodies = append(bodies, chatResult(o["id"], o["content"]))
		}
	}
	if bodies == nil {
		return nil, skipped("result for the simulated user")
	}
	return bodies, nil
}
