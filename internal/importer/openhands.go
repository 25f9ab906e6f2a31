package importer

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// OpenHands is OpenHands' event streams.
const OpenHands Source = "openhands"

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
	read: readOpenHands,
}

func openHandsRun(o object) bool { return openHandsEvents(parseArray(o["history"])) }

// openHandsEvents recognises a list of events, or of pairs of them.
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
	if sdkEvent(o) {
		return true
	}
	if isString(o["action"]) == isString(o["observation"]) || o.has("type") || o.has("role") {
		return false
	}
	return o.has("args") || o.has("content") || o.has("source") || o.has("thought") || o.has("action_risk")
}

func readOpenHands(f *File, id string, data []byte) error {
	if list := array(data); openHandsEvents(list) {
		f.openHandsStream(id, f.openHandsList(list))
		return nil
	}
	var events []entry
	for run := range f.runs(data) {
		if history := parseArray(run.object["history"]); history != nil {
			f.openHandsStream(id, f.openHandsList(history))
			continue
		}
		f.Report.Lines++
		events = append(events, run)
	}
	f.openHandsStream(id, events)
	return nil
}

// openHandsList returns the events of a list, which may have them in pairs.
func (f *File) openHandsList(list [][]byte) []entry {
	var events [][]byte
	for _, raw := range list {
		if pair := parseArray(raw); pair != nil {
			events = append(events, pair...)
		} else {
			events = append(events, raw)
		}
	}
	return slices.Collect(f.elements(events))
}

func (f *File) openHandsStream(id string, events []entry) {
	if len(events) > 0 && events[0].has("kind") {
		f.sdkStream(id, events)
		return
	}
	s := stream{file: f, responses: map[string]bool{}, causes: map[string][]byte{}, open: map[string]bool{}}
	f.add(id, session.OpenAIChat, f.convert(slices.Values(events), s.event))
}

// stream is a stream of events being read.
type stream struct {
	file      *File
	responses map[string]bool   // ids of responses of the model whose message is read
	causes    map[string][]byte // ids of calls, as literals, by the id of the action that they became
	open      map[string]bool   // ids of calls without a result, as literals
	last      []byte            // id of the last call that was made of an action
}

func (s *stream) event(e entry) ([][]byte, error) {
	if isString(e.object["observation"]) {
		return s.observation(e)
	}
	switch action := e.text("action"); action {
	case "":
		return nil, errors.New("an event without action and observation")
	case "system", "message":
		return s.message(e, action)
	case "recall",
		"change_agent_state",
		"condensation",
		"condensation_request",
		"loop_recovery",
		"null",
		"start",
		"pause",
		"resume",
		"stop":
		return nil, skipped("action " + action)
	}
	if e.text("source") == "environment" {
		return nil, skipped("action " + e.text("action") + " of the environment")
	}
	return s.action(e)
}

// message reads what was said without a tool. In older streams the speaker is known by one member: only the agent waits
// for an answer.
func (s *stream) message(e entry, action string) ([][]byte, error) {
	args := parseObject(e.object["args"])
	if args == nil {
		args = e.object
	}
	m := chatMessage{role: "user", content: said(args["content"])}
	source := e.text("source")
	switch {
	case action == "system":
		m.role = "system"
	case source == "agent", source == "" && args.is("wait_for_response"):
		m.role = "assistant"
	}
	images := parseArray(args["image_urls"])
	if images == nil {
		images = parseArray(args["images_urls"])
	}
	if len(images) > 0 {
		m.content = withImages(m.content, images)
	}
	return m.bodies()
}

func withImages(text []byte, urls [][]byte) []byte {
	var blocks [][]byte
	if text != nil {
		blocks = append(blocks, textBlock(text))
	}
	for _, url := range urls {
		blocks = append(blocks, imageBlock(inString(url)))
	}
	return list(blocks)
}

func (s *stream) action(e entry) ([][]byte, error) {
	metadata := parseObject(e.object["tool_call_metadata"])
	response := parseObject(metadata["model_response"])
	reply := chatReply(response)
	if reply == nil {
		return s.made(e, metadata)
	}
	s.call(e, metadata["tool_call_id"])
	if id := response.text("id"); id != "" {
		if s.responses[id] {
			return nil, nil
		}
		s.responses[id] = true
	}
	return reply, nil
}

// call opens a call.
func (s *stream) call(e entry, id []byte) {
	s.causes[string(e.object["id"])] = id
	s.open[string(id)] = true
	s.last = id
}

// made makes a call of an action.
func (s *stream) made(e entry, metadata object) ([][]byte, error) {
	id, name := said(metadata["tool_call_id"]), said(metadata["function_name"])
	if id == nil {
		id = quote("event-" + strconv.Itoa(e.line))
	}
	if name == nil {
		name = e.object["action"]
	}
	args := parseObject(e.object["args"])
	arguments := e.object["args"]
	if args == nil {
		args, arguments = e.object, e.raw
	}
	s.call(e, id)
	m := chatMessage{role: "assistant", content: said(args["thought"])}
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

func (s *stream) observation(e entry) ([][]byte, error) {
	kind := e.text("observation")
	switch kind {
	case "recall", "agent_state_changed", "condense", "null", "loop_detection":
		if recalled := parseObject(e.object["extras"]); len(parseArray(recalled["microagent_knowledge"])) > 0 {
			s.file.note(e.line, "what was recalled from microagents is not imported")
		}
		return nil, skipped("observation " + kind)
	}
	content := inString(e.object["content"])
	if id := s.answered(e); id != nil {
		delete(s.open, string(id))
		return [][]byte{chatResult(id, content)}, nil
	}
	if !filled(content) {
		return nil, skipped("observation " + kind + " without content")
	}
	return [][]byte{message("user", content)}, nil
}

// answered returns the id of the call that an observation answers, nil for none.
func (s *stream) answered(e entry) []byte {
	if id := said(parseObject(e.object["tool_call_metadata"])["tool_call_id"]); id != nil {
		return id
	}
	var id []byte
	switch {
	case e.has("cause"):
		id = s.causes[string(e.object["cause"])]
	case !e.has("id"):
		id = s.last
	}
	if !s.open[string(id)] {
		return nil
	}
	return id
}
