package importer

// A simulation's messages become OpenAI Chat's: arguments, which are objects, go into strings, and the id of a result
// is its tool_call_id. The simulated user has other tools, which the agent neither sees nor may call: the user's calls
// and their results are no part of the agent's conversation; the text beside a call is.
var tau2 = source{
	name:  Tau2,
	title: "tau2-bench's simulations",
	detect: marked(
		"simulations", "messages.0.turn_idx messages.0.role", "0.turn_idx 0.role",
		"messages[] reward_info|termination_reason !messages.0.contents",
		"0.messages[] 0.reward_info|0.termination_reason !0.messages.0.contents",
	),
	into:   OpenAIChat,
	runs:   layout{within: "simulations", lists: []string{"messages"}, bare: true},
	record: tau2Message,
}

// tau2Message adds a message without the calls of the simulated user.
func tau2Message(d *draft, e entry) error {
	m := chatMessage{role: e.text("role")}
	if m.role == "tool" {
		return tau2Results(d, e)
	}
	if isString(e.object["content"]) {
		m.content = e.object["content"]
	}
	for call := range objects(e.object["tool_calls"]) {
		if m.role == "assistant" && call.text("requestor") != "user" {
			m.addCall(call["id"], call["name"], call["arguments"])
		}
	}
	if m.role != "" && e.has("tool_calls") && m.body() == nil {
		return skipped("call of the simulated user")
	}
	return d.addChat(&m)
}

// tau2Results adds a result, or several of one message.
func tau2Results(d *draft, e entry) error {
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
		return skipped("result for the simulated user")
	}
	d.add(bodies...)
	return nil
}

// The messages of a run are OpenAI Chat's, as they are: ids of calls repeat inside a run, and are kept.
var tauBench = source{
	name:   TauBench,
	title:  "tau-bench's runs",
	detect: marked("traj", "0.traj"),
	into:   OpenAIChat,
	runs:   layout{lists: []string{"traj"}},
	record: asItIs,
}
