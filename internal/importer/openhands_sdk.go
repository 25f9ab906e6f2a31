package importer

import (
	"cmp"
	"errors"
	"strconv"
)

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
	m.addSDKContent(e.at("llm_message.content"))
	if m.role == "" && e.text("source") == "agent" {
		m.role = "assistant"
	}
	m.role = cmp.Or(m.role, "user")
	return d.addChat(&m)
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

// addSDKAction adds an action's call to the message of the model's response, which several actions may share.
func addSDKAction(d *draft, e entry) {
	m := d.open(cmp.Or(e.text("llm_response_id"), "line "+strconv.Itoa(e.line)))
	if m.calls == nil {
		m.addSDKContent(e.object["thought"])
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
