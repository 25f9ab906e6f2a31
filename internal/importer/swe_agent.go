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
	name:        SWEAgent,
	title:       "SWE-agent's trajectories",
	detect:      func(s sample) bool { return sweRun(s.object) || s.object == nil && sweRun(s.first) },
	into:        OpenAIChat,
	firstIsMain: true,
	infix:       "-agent-",
	runs: &layout{list: func(f *File, run entry) [][]byte {
		if history := parseArray(run.object["history"]); len(history) > 0 {
			return history
		}
		return f.list(run, "trajectory")
	}},
	open: func(d *draft) reader {
		s := sweLog{d}
		if len(parseArray(d.run["history"])) > 0 {
			return s.message
		}
		return s.step
	},
}

func sweRun(o object) bool {
	history, steps := parseArray(o["history"]), parseArray(o["trajectory"])
	if len(steps) > 0 {
		return parseObject(steps[0]).first("response", "observation", "action") != nil
	}
	if len(history) == 0 {
		return false
	}
	return parseObject(history[0]).fits("role agent|message_type")
}

// sweLog is a run being read.
type sweLog struct{ *draft }

// message reads a message without what SWE-agent made of it: thought and action are in its content or its calls.
func (s sweLog) message(e entry) ([][]byte, error) {
	s.branch = e.text("agent")
	m := chatMessage{role: e.text("role"), reasoning: nonEmpty(e.object["reasoning_content"])}
	switch m.role {
	case "":
		return nil, errNoRole
	case "tool":
		return s.results(e)
	}
	if e.has("content") {
		m.content = e.object["content"]
	}
	if calls := parseArray(e.object["tool_calls"]); len(calls) > 0 {
		m.calls = calls
	}
	if parseArray(e.object["thinking_blocks"]) != nil {
		m.more = member("thinking_blocks", e.object["thinking_blocks"])
	}
	return m.bodies()
}

// results returns a message for each call that the observation answers: OpenAI Chat has one id in a result.
func (s sweLog) results(e entry) ([][]byte, error) {
	ids := parseArray(e.object["tool_call_ids"])
	if ids == nil {
		ids = [][]byte{e.object["tool_call_id"]}
	}
	if len(ids) > 1 {
		s.file.note(e.line, "one observation answers %d calls: each has it as its result", len(ids))
	}
	content := e.object["content"]
	if parseArray(content) == nil {
		content = inString(content)
	}
	var bodies [][]byte
	for _, id := range ids {
		bodies = append(bodies, resultMessage(id, content))
	}
	if bodies == nil {
		return nil, errors.New("an observation that answers no call")
	}
	return bodies, nil
}

func (s sweLog) step(e entry) ([][]byte, error) {
	var bodies [][]byte
	if e.line == 1 {
		bodies = s.prompt(e)
	}
	response, observation := nonEmpty(e.object["response"]), nonEmpty(e.object["observation"])
	if response == nil && observation == nil {
		return bodies, skipped("step without response and observation")
	}
	if response != nil {
		bodies = append(bodies, message("assistant", response))
	}
	if observation != nil {
		bodies = append(bodies, message("user", observation))
	}
	return bodies, nil
}

// prompt returns the messages that the model was sent for a step: versions name them differently.
func (s sweLog) prompt(step entry) [][]byte {
	prompt := parseArray(step.object["query"])
	if prompt == nil {
		prompt = parseArray(step.object["messages"])
	}
	var bodies [][]byte
	for _, raw := range prompt {
		if sent, err := s.message(entry{object: parseObject(raw), raw: raw, line: step.line}); err == nil {
			bodies = append(bodies, sent[0])
		}
	}
	s.branch = ""
	return bodies
}
