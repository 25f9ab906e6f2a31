package importer

import (
	"errors"

	"github.com/varve-dev/varve/internal/session"
)

// SWEAgent is SWE-agent's trajectories.
const SWEAgent Source = "swe-agent"

// A trajectory file has everything twice. Its history is what the model was sent, so that is read; the steps of its
// trajectory are read where there is no history.
//
//   - Runs that call no tools (older ones, and models without tools) have the command in the assistant's text and what
//     it printed in the next user message. That is what the model saw and wrote, and stays text.
//   - A demonstration is part of the history like any other message.
//   - Messages of another agent than the first are another conversation.
var sweAgent = source{
	name:   SWEAgent,
	title:  "SWE-agent's trajectories",
	detect: func(s sample) bool { return sweRun(s.object) || s.object == nil && sweRun(s.first) },
	read:   readSWEAgent,
}

func sweRun(o object) bool {
	history, steps := parseArray(o["history"]), parseArray(o["trajectory"])
	if len(steps) > 0 {
		step := parseObject(steps[0])
		return step.has("response") || step.has("observation") || step.has("action")
	}
	if len(history) == 0 {
		return false
	}
	first := parseObject(history[0])
	return first.has("role") && (first.has("agent") || first.has("message_type"))
}

func readSWEAgent(f *File, id string, data []byte) error {
	for run := range f.runs(data) {
		history := parseArray(run.object["history"])
		if len(history) == 0 {
			f.add(id, session.OpenAIChat, f.sweSteps(f.list(run, "trajectory")))
			continue
		}
		f.sweHistory(id, history)
	}
	return nil
}

// sweHistory reads a history, whose messages name their agents.
func (f *File) sweHistory(id string, history [][]byte) {
	var agents branches
	f.each(f.elements(history), func(e entry) error {
		bodies, err := f.sweMessage(e)
		for _, body := range bodies {
			agents.add(e.text("agent"), Message{Body: body, Line: e.line})
		}
		return err
	})
	f.addBranches(id, session.OpenAIChat, agents, agents.first(), "-agent-")
}

// sweMessage reads a message without what SWE-agent made of it: thought and action are in its content or its calls.
func (f *File) sweMessage(e entry) ([][]byte, error) {
	role, content := e.text("role"), e.object["content"]
	if role == "" {
		return nil, errNoRole
	}
	if role == "tool" {
		return f.sweResults(e, content)
	}
	m := chatMessage{role: role, content: content}
	if !has(content) {
		m.content = nil
	}
	if calls := parseArray(e.object["tool_calls"]); len(calls) > 0 {
		m.calls = calls
	}
	m.reasoning = said(e.object["reasoning_content"])
	if parseArray(e.object["thinking_blocks"]) != nil {
		m.more = member("thinking_blocks", e.object["thinking_blocks"])
	}
	return m.bodies()
}

// sweResults returns a message for each call that the observation answers: Chat Completions has one id in a result.
func (f *File) sweResults(e entry, content []byte) ([][]byte, error) {
	ids := parseArray(e.object["tool_call_ids"])
	if ids == nil {
		ids = [][]byte{e.object["tool_call_id"]}
	}
	if len(ids) > 1 {
		f.note(e.line, "one observation answers %d calls: each has it as its result", len(ids))
	}
	if parseArray(content) == nil {
		content = inString(content)
	}
	var bodies [][]byte
	for _, id := range ids {
		bodies = append(bodies, fill(`{"role":"tool","tool_call_id":%,"content":%}`, inString(id), content))
	}
	if bodies == nil {
		return nil, errors.New("an observation that answers no call")
	}
	return bodies, nil
}

// sweSteps reads the steps of a trajectory: what the model was sent for the first, then its answers and what came of
// them.
func (f *File) sweSteps(steps [][]byte) []Message {
	var messages []Message
	for e := range f.elements(steps) {
		if e.line == 1 {
			for _, raw := range swePrompt(e.object) {
				if bodies, err := f.sweMessage(entry{object: parseObject(raw), raw: raw, line: e.line}); err == nil {
					messages = append(messages, Message{Body: bodies[0], Line: e.line})
				}
			}
		}
		response, observation := said(e.object["response"]), said(e.object["observation"])
		if response == nil && observation == nil {
			f.skip("step without response and observation")
			continue
		}
		f.Report.Imported++
		if response != nil {
			messages = append(messages, Message{Body: message("assistant", response), Line: e.line})
		}
		if observation != nil {
			messages = append(messages, Message{Body: message("user", observation), Line: e.line})
		}
	}
	return messages
}

// swePrompt returns the messages that the model was sent for a step: versions name them differently.
func swePrompt(step object) [][]byte {
	if query := parseArray(step["query"]); query != nil {
		return query
	}
	return parseArray(step["messages"])
}
