package importer

import "errors"

// A trajectory file has everything twice. Its history is what the model was sent, so that is read; the steps of its
// trajectory are read where there is no history.
//
//   - Runs that call no tools (older ones, and models without tools) have the command in the assistant's text and what
//     it printed in the next user message. That is what the model saw and wrote, and it is kept as text.
//   - A demonstration is part of the history like any other message.
//   - Messages of another agent than the first are another conversation.
var sweAgent = source{
	name:  SWEAgent,
	title: "SWE-agent's trajectories",
	detect: marked(
		"trajectory.0.response|trajectory.0.observation|trajectory.0.action",
		"0.trajectory.0.response|0.trajectory.0.observation|0.trajectory.0.action",
		"!trajectory.0 history.0.role history.0.agent|history.0.message_type",
		"!0.trajectory.0 0.history.0.role 0.history.0.agent|0.history.0.message_type",
	),
	into:        OpenAIChat,
	firstIsMain: true,
	infix:       "-agent-",
	runs:        layout{lists: []string{"history", "trajectory"}},
	open: func(d *draft) record {
		if d.run.has("history.0") {
			return sweMessage
		}
		return sweStep
	},
}

// sweMessage adds a message without what SWE-agent made of it: thought and action are in its content or its calls.
func sweMessage(d *draft, e entry) error {
	d.branch = e.text("agent")
	m := chatMessage{
		role: e.text("role"), content: e.first("content"), reasoning: nonEmpty(e.object["reasoning_content"]),
		calls: parseArray(e.object["tool_calls"]),
	}
	if m.role == "tool" {
		return sweResults(d, e)
	}
	if parseArray(e.object["thinking_blocks"]) != nil {
		m.more = member("thinking_blocks", e.object["thinking_blocks"])
	}
	return d.addChat(&m)
}

// sweResults adds a message for each call that the observation answers: OpenAI Chat has one id in a result.
func sweResults(d *draft, e entry) error {
	ids := parseArray(e.object["tool_call_ids"])
	if ids == nil {
		ids = [][]byte{e.object["tool_call_id"]}
	}
	if len(ids) > 1 {
		d.note("one observation answers %d calls: each has it as its result", len(ids))
	}
	content := e.object["content"]
	if parseArray(content) == nil {
		content = inString(content)
	}
	if len(ids) == 0 {
		return errors.New("an observation that answers no call")
	}
	for _, id := range ids {
		d.add(resultMessage(id, content))
	}
	return nil
}

// sweStep adds what the model wrote and what it was answered. Before the first step is what the model was sent, which
// versions name differently.
func sweStep(d *draft, e entry) error {
	if e.line == 1 {
		for o := range objects(e.first("query", "messages")) {
			delete(o, "agent")
			_ = sweMessage(d, entry{object: o, line: e.line})
		}
	}
	response, observation := nonEmpty(e.object["response"]), nonEmpty(e.object["observation"])
	if response == nil && observation == nil {
		return skipped("step without response and observation")
	}
	if response != nil {
		d.add(message("assistant", response))
	}
	if observation != nil {
		d.add(message("user", observation))
	}
	return nil
}
