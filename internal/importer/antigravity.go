package importer

import (
	"errors"
	"fmt"
	"strconv"
)

// Calls have no ids: they get one made of the step and their place in it, and each further step of the model is the
// result of the oldest call that is still open, or of one that the file does not have. What the system writes in the
// user's name, and the summary that a compaction leaves, are user messages.
var antigravity = source{
	name:   Antigravity,
	title:  "Antigravity's steps",
	detect: marked("step_index source type"),
	into:   OpenAIChat,
	open:   func(*draft) record { return (&antigravitySteps{}).step },
}

// antigravitySteps keeps the ids of the calls without a result, the oldest first.
type antigravitySteps struct{ open [][]byte }

func (a *antigravitySteps) step(d *draft, e entry) error {
	content := nonEmpty(e.object["content"])
	kind := e.text("type")
	switch {
	case kind == "":
		return errors.New("a step without a type")
	case kind == "PLANNER_RESPONSE":
		return a.planned(d, e, content)
	case content == nil:
		return skipped(kind + " without content")
	case kind == "USER_INPUT", e.text("source") == "SYSTEM":
		d.add(message("user", content))
		return nil
	}
	id := quote("step-" + strconv.Itoa(e.line))
	if len(a.open) > 0 {
		id, a.open = a.open[0], a.open[1:]
	}
	d.add(chatResult(id, content))
	return nil
}

// planned adds the model's message, whose calls replace those that are open.
func (a *antigravitySteps) planned(d *draft, e entry, content []byte) error {
	m := chatMessage{role: "assistant", content: content, reasoning: nonEmpty(e.object["thinking"])}
	a.open = nil
	for o := range objects(e.object["tool_calls"]) {
		id := quote(fmt.Sprintf("step-%d-%d", e.line, len(a.open)+1))
		m.addCall(id, o["name"], o["args"])
		a.open = append(a.open, id)
	}
	return d.addChat(&m)
}
