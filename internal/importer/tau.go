package importer

// A simulation's messages become OpenAI Chat's: arguments, which are objects, go into strings, and the id of a result
// is its tool_call_id. The simulated user has other tools, which the agent neither sees nor may call: the user's calls
// and their results are no part of the agent's conversation; the text beside a call is.
var tau2 = source{
	name:  Tau2,
	title: "tau2-bench's simulations",
	detect: func(s sample) bool {
		return s.object.has("simulations") || simulation(s.object) || simulation(s.first) || tau2Element(s.first)
	},
	into:     OpenAIChat,
	required: "role",
	runs:     &layout{bare: tau2Element, within: "simulations", list: listed("messages")},
	open:     perRecord(tau2Message),
}

// simulation recognises a simulation.
func simulation(o object) bool {
	messages := parseArray(o["messages"])
	return o.fits("messages[] reward_info|termination_reason") &&
		(len(messages) == 0 || !parseObject(messages[0]).has("contents"))
}

// tau2Element recognises a message by members that only tau2 gives all of them.
func tau2Element(o object) bool { return o.fits("turn_idx role") }

// tau2Message returns a message without the calls of the simulated user.
func tau2Message(e entry) ([][]byte, error) {
	m := chatMessage{role: e.text("role")}
	if m.role == "tool" {
		return tau2Results(e)
	}
	if isString(e.object["content"]) {
		m.content = e.object["content"]
	}
	for call := range objects(e.object["tool_calls"]) {
		if m.role == "assistant" && call.text("requestor") != "user" {
			m.calls = append(m.calls, chatCall(call["id"], call["name"], call["arguments"]))
		}
	}
	if e.has("tool_calls") && m.body() == nil {
		return nil, skipped("call of the simulated user")
	}
	return m.bodies()
}

// tau2Results reads a result, or several in one message.
func tau2Results(e entry) ([][]byte, error) {
	results := e.object["tool_messages"]
	if parseArray(results) == nil {
		results = list([][]byte{e.raw})
	}
	var bodies [][]byte
	for o := range objects(results) {
		if o.text("requestor") != "user" {
			bodies = append(bodies, chatResult(o["id"], o["content"]))
		}
	}
	if bodies == nil {
		return nil, skipped("result for the simulated user")
	}
	return bodies, nil
}

// The messages of a run are OpenAI Chat's, as they are: ids of calls repeat inside a run, and are kept.
var tauBench = source{
	name:     TauBench,
	title:    "tau-bench's runs",
	detect:   func(s sample) bool { return s.object.has("traj") || s.object == nil && s.first.has("traj") },
	into:     OpenAIChat,
	required: "role",
	runs:     &layout{list: listed("traj")},
	open:     perRecord(asItIs),
}

// asItIs returns a record as a message.
func asItIs(e entry) ([][]byte, error) { return [][]byte{e.raw}, nil }
