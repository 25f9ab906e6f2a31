package importer

import (
	"cmp"
	"errors"
	"strconv"
)

// sdkEvents is a stream of the events of OpenHands' agent SDK, each of which names its kind. The actions of one
// response of the model are one message with a call each.
type sdkEvents struct{ *draft }

// sdkEvent is the pattern of events that are conversation.
const sdkEvent = "kind=SystemPromptEvent|MessageEvent|ActionEvent|" +
	"ObservationEvent|UserRejectObservation|AgentErrorEvent"

func (s sdkEvents) event(e entry) error {
	call := e.object["tool_call_id"]
	switch kind := e.text("kind"); kind {
	case "SystemPromptEvent":
		s.add(message("system", inString(parseObject(e.object["system_prompt"])["text"])))
	case "MessageEvent":
		bodies, err := sdkMessage(e)
		s.add(bodies...)
		return err
	case "ActionEvent":
		s.action(e)
	case "ObservationEvent":
		s.add(chatResult(call, parseObject(e.object["observation"]).first("content", "output")))
	case "UserRejectObservation":
		s.add(chatResult(call, e.object["rejection_reason"]))
	case "AgentErrorEvent":
		s.add(chatResult(call, e.object["error"]))
	case "":
		return errors.New("an event without a kind")
	default:
		return skipped(kind)
	}
	return nil
}

func sdkMessage(e entry) ([][]byte, error) {
	sent := parseObject(e.object["llm_message"])
	m := chatMessage{role: sent.text("role")}
	m.addSDKContent(sent["content"])
	if m.role == "" && e.text("source") == "agent" {
		m.role = "assistant"
	}
	m.role = cmp.Or(m.role, "user")
	return m.bodies()
}

// addSDKContent adds the texts and images of a content.
func (m *chatMessage) addSDKContent(raw []byte) {
	if isString(raw) {
		m.addText(raw)
	}
	for o := range objects(raw) {
		if nonEmpty(o["text"]) != nil {
			m.addText(o["text"])
		}
		m.addImages(parseArray(o["image_urls"])...)
	}
}

func (s sdkEvents) action(e entry) {
	m := s.open(cmp.Or(e.text("llm_response_id"), "line "+strconv.Itoa(e.line)))
	if m.calls == nil {
		m.addSDKContent(e.object["thought"])
		m.reasoning = nonEmpty(e.object["reasoning_content"])
		if len(parseArray(e.object["thinking_blocks"])) > 0 {
			m.more = member("thinking_blocks", e.object["thinking_blocks"])
		}
	}
	call := parseObject(e.object["tool_call"])
	if function := parseObject(call["function"]); function != nil {
		call = function
	}
	name, arguments := call["name"], call["arguments"]
	if call == nil {
		name, arguments = e.object["tool_name"], e.object["action"]
	}
	m.calls = append(m.calls, chatCall(e.object["tool_call_id"], name, arguments))
}
