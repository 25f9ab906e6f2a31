package importer

import (
	"errors"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/session"
)

// sdkEvents is a stream of the events of OpenHands' agent SDK, each of which names its kind. The actions of one
// response of the model are one message with a call each.
type sdkEvents struct{ chatSlots }

// sdkKinds are the kinds of events that are conversation.
var sdkKinds = set(
	"SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "UserRejectObservation",
	"AgentErrorEvent",
)

func sdkEvent(o object) bool { return sdkKinds[o.text("kind")] }

func (f *File) sdkStream(id string, events []entry) {
	s := &sdkEvents{newChatSlots()}
	f.each(slices.Values(events), s.event)
	f.add(id, session.OpenAIChat, s.messages())
}

func (s *sdkEvents) event(e entry) error {
	switch kind := e.text("kind"); kind {
	case "SystemPromptEvent":
		s.add(e.line, message("system", inString(parseObject(e.object["system_prompt"])["text"])))
	case "MessageEvent":
		return s.message(e)
	case "ActionEvent":
		s.action(e)
	case "ObservationEvent":
		observation := parseObject(e.object["observation"])
		content := observation["content"]
		if !has(content) {
			content = observation["output"]
		}
		s.add(e.line, chatResult(e.object["tool_call_id"], content))
	case "UserRejectObservation":
		s.add(e.line, chatResult(e.object["tool_call_id"], e.object["rejection_reason"]))
	case "AgentErrorEvent":
		s.add(e.line, chatResult(e.object["tool_call_id"], e.object["error"]))
	case "":
		return errors.New("an event without a kind")
	default:
		return skipped(kind)
	}
	return nil
}

func (s *sdkEvents) message(e entry) error {
	said := parseObject(e.object["llm_message"])
	m := chatMessage{role: said.text("role")}
	switch {
	case m.role != "":
	case e.text("source") == "agent":
		m.role = "assistant"
	default:
		m.role = "user"
	}
	m.content = blocksOrText(sdkBlocks(said["content"]))
	body, ok := m.body()
	if !ok {
		return skipped(m.role + " without content")
	}
	s.add(e.line, body)
	return nil
}

// sdkBlocks returns the texts and images of a content.
func sdkBlocks(raw []byte) [][]byte {
	if isString(raw) {
		return [][]byte{textBlock(raw)}
	}
	var blocks [][]byte
	for _, raw := range parseArray(raw) {
		o := parseObject(raw)
		if filled(o["text"]) {
			blocks = append(blocks, textBlock(o["text"]))
		}
		for _, url := range parseArray(o["image_urls"]) {
			blocks = append(blocks, imageBlock(inString(url)))
		}
	}
	return blocks
}

// action adds a call; the first call of a response also adds its texts.
func (s *sdkEvents) action(e entry) {
	response := e.text("llm_response_id")
	if response == "" {
		response = "line " + strconv.Itoa(e.line)
	}
	m := s.open(response, e.line)
	if m.calls == nil {
		m.content = blocksOrText(sdkBlocks(e.object["thought"]))
		m.reasoning = said(e.object["reasoning_content"])
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
