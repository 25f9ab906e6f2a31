package importer

import (
	"cmp"
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
// The events of OpenHands' agent SDK are of other kinds.
var openHands = source{
	name:  OpenHands,
	title: "OpenHands' event streams",
	detect: func(s sample) bool {
		places := []string{"history.0", "history.0.0", "0", "0.0", "0.history.0", "0.history.0.0"}
		return openHandsEvent(s.object) || slices.ContainsFunc(places, func(place string) bool {
			return openHandsEvent(parseObject(s.members.at(place)))
		})
	},
	into: OpenAIChat,
	runs: layout{lists: []string{"history"}, bare: true, pairs: true},
	open: func(*draft) record {
		return (&openHandsStream{causes: map[string][]byte{}, open: map[string]bool{}}).event
	},
}

// openHandsEvent tells events from SWE-agent's steps, which have both an action and an observation.
func openHandsEvent(o object) bool {
	if o.fits(sdkEvent) {
		return true
	}
	return isString(o["action"]) != isString(o["observation"]) &&
		o.fits("!type !role args|content|source|thought|action_risk")
}

// openHandsStream is a stream of events being read.
type openHandsStream struct {
	causes map[string][]byte // ids of calls, as literals, by the id of the action that they became
	open   map[string]bool   // ids of calls without a result, as literals
	last   []byte            // id of the last call that was made of an action
	sdk    bool              // whether the events are the agent SDK's
}

// hiddenActions are the actions that are no part of the conversation, hiddenObservations the observations.
var (
	hiddenActions = set(
		"recall", "change_agent_state", "condensation", "condensation_request", "loop_recovery", "null", "start",
		"pause", "resume", "stop",
	)
	hiddenObservations = set("recall", "agent_state_changed", "condense", "null", "loop_detection")
)

func (s *openHandsStream) event(d *draft, e entry) error {
	action := e.text("action")
	s.sdk = s.sdk || e.has("kind")
	switch {
	case s.sdk:
		return addSDKEvent(d, e)
	case isString(e.object["observation"]):
		return s.observation(d, e)
	case action == "":
		return errors.New("an event without action and observation")
	case action == "system", action == "message":
		return openHandsMessage(d, e, action)
	case hiddenActions[action]:
		return skipped("action " + action)
	case e.text("source") == "environment":
		return skipped("action " + action + " of the environment")
	}
	return s.action(d, e)
}

// openHandsMessage adds what was written without a tool. In older streams the speaker is known by one member: only
// the agent waits for an answer.
func openHandsMessage(d *draft, e entry, action string) error {
	args := e.object.object("args")
	m := chatMessage{role: "user", content: nonEmpty(args["content"])}
	source := e.text("source")
	switch {
	case action == "system":
		m.role = "system"
	case source == "agent", source == "" && args.is("wait_for_response"):
		m.role = "assistant"
	}
	images := parseArray(args.first("image_urls", "images_urls"))
	if len(images) > 0 && m.content != nil {
		m.addText(m.content)
		m.content = nil
	}
	m.addImages(images...)
	return d.addChat(&m)
}

// action adds the response that the action came of unless another action had it, or makes a call of the action.
func (s *openHandsStream) action(d *draft, e entry) error {
	metadata := parseObject(e.object["tool_call_metadata"])
	response := parseObject(metadata["model_response"])
	reply, id := chatReply(response), metadata["tool_call_id"]
	if reply == nil {
		id = or(nonEmpty(id), quote("event-"+strconv.Itoa(e.line)))
	}
	s.causes[string(e.object["id"])] = id
	s.open[string(id)] = true
	s.last = id
	if reply == nil {
		return d.addChat(madeCall(e, id, metadata["function_name"]))
	}
	if answer := response.text("id"); answer == "" || d.first([]byte(answer)) {
		d.add(reply...)
	}
	return nil
}

// madeCall makes a call of an action.
func madeCall(e entry, id, name []byte) *chatMessage {
	arguments := e.object["args"]
	if parseObject(arguments) == nil {
		arguments = e.raw
	}
	m := &chatMessage{role: "assistant", content: nonEmpty(e.object.object("args")["thought"])}
	m.addCall(id, or(nonEmpty(name), e.object["action"]), without(arguments, notArguments))
	return m
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
	return inBraces(members)
}

// observation adds the result of a call, or a user message.
func (s *openHandsStream) observation(d *draft, e entry) error {
	kind := e.text("observation")
	if hiddenObservations[kind] {
		if e.has("extras.microagent_knowledge.0") {
			d.note("what was recalled from microagents is not imported")
		}
		return skipped("observation " + kind)
	}
	content, id := inString(e.object["content"]), s.answered(e)
	switch {
	case id != nil:
		delete(s.open, string(id))
		d.add(chatResult(id, content))
	case nonEmpty(content) == nil:
		return skipped("observation " + kind + " without content")
	default:
		d.add(message("user", content))
	}
	return nil
}

// answered returns the id of the call that an observation answers, nil for none.
func (s *openHandsStream) answered(e entry) []byte {
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

// sdkEvent is the pattern of those events of OpenHands' agent SDK that are conversation. Each names its kind.
const sdkEvent = "kind=SystemPromptEvent|MessageEvent|ActionEvent|" +
	"ObservationEvent|UserRejectObservation|AgentErrorEvent"

func addSDKEvent(d *draft, e entry) error {
	call := e.object["tool_call_id"]
	switch kind := e.text("kind"); kind {
	case "SystemPromptEvent":
		d.add(message("system", inString(e.at("system_prompt.text"))))
	case "MessageEvent":
		return addSDKMessage(d, e)
	case "ActionEvent":
		addSDKAction(d, e)
	case "ObservationEvent":
		d.add(chatResult(call, e.first("observation.content", "observation.output")))
	case "UserRejectObservation":
		d.add(chatResult(call, e.object["rejection_reason"]))
	case "AgentErrorEvent":
		d.add(chatResult(call, e.object["error"]))
	case "":
		return errors.New("an event without a kind")
	default:
		return skipped(kind)
	}
	return nil
}

func addSDKMessage(d *draft, e entry) error {
	m := chatMessage{role: e.text("llm_message.role")}
	d.addSDKContent(&m, e.at("llm_message.content"))
	if m.role == "" && e.text("source") == "agent" {
		m.role = "assistant"
	}
	m.role = cmp.Or(m.role, "user")
	return d.addChat(&m)
}

// addSDKContent adds the texts and images of a content.
func (d *draft) addSDKContent(m *chatMessage, raw []byte) {
	if isString(raw) {
		m.addText(raw)
	}
	for o := range objects(raw) {
		if nonEmpty(o["text"]) != nil {
			m.addText(o["text"])
		}
		m.addImages(parseArray(o["image_urls"])...)
		if !o.has("text") && !o.has("image_urls") {
			d.leavePart(o.text("type"))
		}
	}
}

// addSDKAction adds an action's call to the message of the model's response, which several actions may share.
func addSDKAction(d *draft, e entry) {
	m := d.open(cmp.Or(e.text("llm_response_id"), "line "+strconv.Itoa(e.line)))
	if m.calls == nil {
		d.addSDKContent(m, e.object["thought"])
		m.reasoning = nonEmpty(e.object["reasoning_content"])
		if e.has("thinking_blocks.0") {
			m.more = member("thinking_blocks", e.object["thinking_blocks"])
		}
	}
	call := parseObject(e.first("tool_call.function", "tool_call"))
	if call == nil {
		call = object{"name": e.object["tool_name"], "arguments": e.object["action"]}
	}
	m.addCall(e.object["tool_call_id"], call["name"], call["arguments"])
}
