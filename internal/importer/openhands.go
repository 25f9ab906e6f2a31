package importer

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/rawjson"
)

// An event is an action or an observation; a run has them in its history, one by one or in pairs.
//
//   - An action that came of a call has the model's response: its message, which several actions may share, is read
//     as it stands.
//   - Actions of older streams, and of models without tools, have only what was made of the answer: they become a
//     call named after the action, with the action's own members as arguments, and the thought as its text. Its id is
//     made of its place, as the stream has none.
//   - An observation is the result of the call that caused it, in older streams of the last one. One that no call
//     caused (an answer that could not be understood) is a user message, as it was for the model.
//   - Recalls, changes of state and condensations are no part of the conversation.
//
// The events of OpenHands' agent SDK are of other kinds: see openhands_sdk.go.
var openHands = source{
	name:  OpenHands,
	title: "OpenHands' event streams",
	detect: func(s sample) bool {
		return openHandsRun(s.object) || openHandsEvent(s.object) ||
			s.object == nil && (openHandsRun(s.first) || openHandsEvents(s.messages))
	},
	into: OpenAIChat,
	read: readOpenHands,
}

func openHandsRun(o object) bool { return openHandsEvents(parseArray(o["history"])) }

func openHandsEvents(list [][]byte) bool {
	if len(list) == 0 {
		return false
	}
	if pair := parseArray(list[0]); len(pair) > 0 {
		list = pair
	}
	return openHandsEvent(parseObject(list[0]))
}

// openHandsEvent tells events from SWE-agent's steps, which have both an action and an observation.
func openHandsEvent(o object) bool {
	if o.fits(sdkEvent) {
		return true
	}
	return isString(o["action"]) != isString(o["observation"]) &&
		o.fits("!type !role args|content|source|thought|action_risk")
}

// readOpenHands reads a list of events, or runs with histories. Events that are values of their own are one stream.
func readOpenHands(f *File, id string, data []byte) error {
	if list := array(data); openHandsEvents(list) {
		f.putEvents(id, slices.Collect(f.elements(withoutPairs(list))))
		return nil
	}
	var events []entry
	for run := range f.runs(data) {
		if history := parseArray(run.object["history"]); history != nil {
			f.putEvents(id, slices.Collect(f.elements(withoutPairs(history))))
			continue
		}
		f.Report.Lines++
		events = append(events, run)
	}
	f.putEvents(id, events)
	return nil
}

func withoutPairs(list [][]byte) [][]byte {
	var events [][]byte
	for _, raw := range list {
		if pair := parseArray(raw); pair != nil {
			events = append(events, pair...)
		} else {
			events = append(events, raw)
		}
	}
	return events
}

// putEvents appends the conversation that a stream makes. The first event tells which of the two kinds it is.
func (f *File) putEvents(id string, events []entry) {
	d := f.newDraft(nil)
	read := (&stream{draft: d, causes: map[string][]byte{}, open: map[string]bool{}}).event
	if len(events) > 0 && events[0].has("kind") {
		read = adding(sdkEvents{d}.event)
	}
	d.read(slices.Values(events), read)
	d.finish(id)
}

// stream is a stream of events being read.
type stream struct {
	*draft
	causes map[string][]byte // ids of calls, as literals, by the id of the action that they became
	open   map[string]bool   // ids of calls without a result, as literals
	last   []byte            // id of the last call that was made of an action
}

// hiddenActions are the actions that are no part of the conversation.
var hiddenActions = set(
	"recall", "change_agent_state", "condensation", "condensation_request", "loop_recovery", "null", "start", "pause",
	"resume", "stop",
)

func (s *stream) event(e entry) ([][]byte, error) {
	action := e.text("action")
	switch {
	case isString(e.object["observation"]):
		return s.observation(e)
	case action == "":
		return nil, errors.New("an event without action and observation")
	case action == "system", action == "message":
		return openHandsMessage(e, action)
	case hiddenActions[action]:
		return nil, skipped("action " + action)
	case e.text("source") == "environment":
		return nil, skipped("action " + action + " of the environment")
	}
	return s.action(e)
}

// openHandsMessage returns what was written without a tool. In older streams the speaker is known by one member: only
// the agent waits for an answer.
func openHandsMessage(e entry, action string) ([][]byte, error) {
	args := parseObject(e.object["args"])
	if args == nil {
		args = e.object
	}
	m := chatMessage{role: "user", content: nonEmpty(args["content"])}
	source := e.text("source")
	switch {
	case action == "system":
		m.role = "system"
	case source == "agent", source == "" && args.is("wait_for_response"):
		m.role = "assistant"
	}
	if images := parseArray(args.first("image_urls", "images_urls")); len(images) > 0 {
		if m.content != nil {
			m.addText(m.content)
		}
		m.addImages(images...)
		m.content = list(m.blocks)
	}
	return m.bodies()
}

func (s *stream) action(e entry) ([][]byte, error) {
	metadata := parseObject(e.object["tool_call_metadata"])
	response := parseObject(metadata["model_response"])
	reply := chatReply(response)
	if reply == nil {
		return s.made(e, metadata)
	}
	s.opened(e, metadata["tool_call_id"])
	if id := response.text("id"); id != "" && !s.first([]byte(id)) {
		return nil, nil
	}
	return reply, nil
}

func (s *stream) opened(e entry, id []byte) {
	s.causes[string(e.object["id"])] = id
	s.open[string(id)] = true
	s.last = id
}

// made makes a call of an action.
func (s *stream) made(e entry, metadata object) ([][]byte, error) {
	id := or(nonEmpty(metadata["tool_call_id"]), quote("event-"+strconv.Itoa(e.line)))
	name := or(nonEmpty(metadata["function_name"]), e.object["action"])
	args := parseObject(e.object["args"])
	arguments := e.object["args"]
	if args == nil {
		args, arguments = e.object, e.raw
	}
	s.opened(e, id)
	m := chatMessage{role: "assistant", content: nonEmpty(args["thought"])}
	m.calls = [][]byte{chatCall(id, name, without(arguments, notArguments))}
	return m.bodies()
}

// notArguments are the members of an action that are about the action.
var notArguments = set(
	"action", "thought", "id", "timestamp", "source", "message", "cause", "is_confirmed", "confirmation_state",
	"action_risk", "security_risk", "kernel_init_code", "keep_prompt", "hidden", "blocking", "llm_metrics", "timeout",
)

// without returns an object without the named members; the others keep their bytes.
func without(raw []byte, names map[string]bool) []byte {
	var members [][]byte
	for key, value := range rawjson.Members(raw, rawjson.Start(raw)) {
		name, _ := rawjson.Unquote(nil, key.Of(raw))
		if !names[string(name)] {
			members = append(members, fill("%:%", key.Of(raw), value.Of(raw)))
		}
	}
	return fill("{%}", bytes.Join(members, []byte{','}))
}

// observation returns the result of a call, or a user message.
func (s *stream) observation(e entry) ([][]byte, error) {
	kind := e.text("observation")
	switch kind {
	case "recall", "agent_state_changed", "condense", "null", "loop_detection":
		if len(parseArray(e.at("extras.microagent_knowledge"))) > 0 {
			s.file.note(e.line, "what was recalled from microagents is not imported")
		}
		return nil, skipped("observation " + kind)
	}
	content := inString(e.object["content"])
	if id := s.answered(e); id != nil {
		delete(s.open, string(id))
		return [][]byte{chatResult(id, content)}, nil
	}
	if nonEmpty(content) == nil {
		return nil, skipped("observation " + kind + " without content")
	}
	return [][]byte{message("user", content)}, nil
}

// answered returns the id of the call that an observation answers, nil for none.
func (s *stream) answered(e entry) []byte {
	if id := nonEmpty(e.at("tool_call_metadata.tool_call_id")); id != nil {
		return id
	}
	id := s.last
	if e.has("cause") {
		id = s.causes[string(e.object["cause"])]
	} else if e.has("id") {
		return nil
	}
	if !s.open[string(id)] {
		return nil
	}
	return id
}
