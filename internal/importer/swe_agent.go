package importer

import "errors"

// A trajectory file has everything twice. Its history is what the model was sent, so that is read; the steps of its
// trajectory are read where there is no history.
//
//   - Runs that call no tools (older ones, and models without tools) have the command in the assistant's text and what
//     it printed in the next user message: they become a call and its result (spoken.go).
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
		run := &sweRun{open: map[string][]byte{}}
		if d.run.has("history.0") {
			return run.message
		}
		return run.step
	},
}

// sweRun is a trajectory being read.
type sweRun struct {
	open map[string][]byte // by agent, the id of the call in its newest message if that was an action
}

// message adds a message without what SWE-agent made of it: thought and action are in its content or its calls.
func (r *sweRun) message(d *draft, e entry) error {
	d.branch = e.text("agent")
	m := chatMessage{
		role: e.text("role"), content: e.first("content"), reasoning: nonEmpty(e.object["reasoning_content"]),
		calls: parseArray(e.object["tool_calls"]),
	}
	id := r.open[d.branch]
	delete(r.open, d.branch)
	switch {
	case m.role == "tool":
		return sweResults(d, e)
	case m.role == "user" && id != nil:
		d.add(chatResult(id, m.content))
		return nil
	case m.role == "assistant" && m.calls == nil:
		r.act(d, e, &m)
	}
	if parseArray(e.object["thinking_blocks"]) != nil {
		m.more = member("thinking_blocks", e.object["thinking_blocks"])
	}
	return d.addChat(&m)
}

// act makes a call of the action that stands in a message's text.
func (r *sweRun) act(d *draft, e entry, m *chatMessage) {
	if action := nonEmpty(e.object["action"]); action != nil {
		id := actionID(e.line)
		m.content = nonEmpty(e.object["thought"])
		m.addCall(id, quote("bash"), command(action))
		r.open[d.branch] = id
	}
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

// step adds what the model wrote and what it was answered. Before the first step is what the model was sent, which
// versions name differently.
func (r *sweRun) step(d *draft, e entry) error {
	if e.line == 1 {
		for o := range objects(e.first("query", "messages")) {
			delete(o, "agent")
			_ = r.message(d, entry{object: o, line: e.line})
		}
	}
	response, observation := nonEmpty(e.object["response"]), nonEmpty(e.object["observation"])
	if response == nil && observation == nil {
		return skipped("step without response and observation")
	}
	if delete(r.open, d.branch); response != nil {
		m := chatMessage{role: "assistant", content: response}
		r.act(d, e, &m)
		d.add(m.body())
	}
	id := r.open[d.branch]
	switch {
	case observation == nil:
	case id != nil:
		d.add(chatResult(id, observation))
	default:
		d.add(message("user", observation))
	}
	return nil
}
