package importer

import "encoding/json"

// streamed returns the message that the events of a stream build, as a response: Anthropic's events, or the pieces of a
// text that other models send.
func streamed(events [][]byte) object {
	m := &streamedMessage{}
	var texts [][]byte
	for _, raw := range events {
		o := parseObject(raw)
		if text := o.first(bedrockAnswers...); isString(text) {
			texts = append(texts, text)
		}
		m.event(o)
	}
	if len(m.blocks) == 0 {
		return object{"outputText": concat(texts...)}
	}
	return object{"type": quote("message"), "role": quote("assistant"), "content": list(m.content())}
}

// streamedMessage is a message of Anthropic whose blocks grow by events.
type streamedMessage struct{ blocks []streamedBlock }

// streamedBlock is a block as it began, and its members so far.
type streamedBlock struct {
	object
	begun []byte
}

func (m *streamedMessage) event(o object) {
	switch o.text("type") {
	case "content_block_start":
		if block := parseObject(o["content_block"]); block != nil {
			m.blocks = append(m.blocks, streamedBlock{block, o["content_block"]})
		}
	case "content_block_delta":
		delta := parseObject(o["delta"])
		if len(m.blocks) == 0 || delta == nil {
			return
		}
		last := m.blocks[len(m.blocks)-1]
		for _, name := range []string{"text", "thinking", "signature", "partial_json"} {
			if isString(delta[name]) {
				last.object[name] = concat(last.object[name], delta[name])
			}
		}
	}
}

// content returns the blocks. The input of a call came in pieces of its JSON.
func (m *streamedMessage) content() [][]byte {
	var blocks [][]byte
	for _, block := range m.blocks {
		o := block.object
		if input := unquoted(o["partial_json"]); json.Valid(input) {
			o["input"] = input
		}
		switch o.text("type") {
		case "tool_use":
			blocks = append(blocks, toolUse(o["id"], o["name"], o["input"]))
		case "text":
			blocks = append(blocks, textBlock(inString(o["text"])))
		case "thinking":
			const thinking = `{"type":"thinking","thinking":%%}`
			signature := member("signature", nonEmpty(o["signature"]))
			blocks = append(blocks, fill(thinking, inString(o["thinking"]), signature))
		case "redacted_thinking":
			blocks = append(blocks, fill(`{"type":"redacted_thinking","data":%}`, inString(o["data"])))
		case "server_tool_use":
			begun := without(block.begun, set("input"))
			blocks = append(blocks, fill(`%,"input":%}`, begun[:len(begun)-1], or(o["input"], "{}")))
		default:
			blocks = append(blocks, block.begun)
		}
	}
	return blocks
}
