package importer

import (
	"errors"
	"fmt"
)

// An export (conversations.json) is an array of conversations with their messages (chat_messages), of which newer ones
// name the message before them; what the web app loads has the one that the conversation ends with, too.
//
//   - Calls and results stand in one message of the assistant, older ones without ids: the result follows its call.
//   - What was pasted or attached as text is a document; other files are not in the export.
var claudeAI = source{
	name:   ClaudeAI,
	title:  "Claude.ai's exports",
	detect: marked("0.chat_messages[]", "chat_messages[]"),
	into:   Anthropic,
	runs:   layout{lists: []string{"chat_messages"}},
	tree: &tree{
		id: "uuid", parent: "parent_message_uuid", leaf: "current_leaf_message_uuid",
		spoke: func(o object) bool { return o.has("sender") },
	},
	record: claudeAIMessage,
}

func claudeAIMessage(d *draft, e entry) error {
	d.at = moment(e.object["created_at"])
	var role string
	switch e.text("sender") {
	case "human":
		role = "user"
	case "assistant":
		role = "assistant"
	default:
		return errors.New("no sender that is human or assistant")
	}
	blocks := claudeAIFiles(d, e)
	content := parseArray(e.object["content"])
	if len(content) == 0 && nonEmpty(e.object["text"]) != nil {
		content = [][]byte{textBlock(e.object["text"])}
	}
	before := len(d.slots)
	call := quote(fmt.Sprintf("call-%d", e.line))
	for i, raw := range content {
		o := parseObject(raw)
		switch kind := o.text("type"); kind {
		case "text":
			if nonEmpty(o["text"]) != nil {
				blocks = append(blocks, textBlock(o["text"]))
			}
		case "thinking":
			if nonEmpty(o["thinking"]) != nil {
				blocks = append(blocks, fill(`{"type":"thinking","thinking":%}`, o["thinking"]))
			}
		case "tool_use":
			call = or(nonEmpty(o["id"]), string(quote(fmt.Sprintf("call-%d-%d", e.line, i+1))))
			blocks = append(blocks, toolUse(call, o["name"], o["input"]))
		case "tool_result":
			d.addBlocks(role, blocks)
			blocks = nil
			id := or(nonEmpty(o["tool_use_id"]), string(call))
			d.addTurn("user", "", toolResult(id, resultContent(o["content"]), boolean(o.is("is_error"))))
		default:
			d.leavePart(kind)
		}
	}
	d.addBlocks(role, blocks)
	if len(d.slots) == before {
		return skipped(e.text("sender") + " without content")
	}
	return nil
}

// addBlocks adds a turn unless it has no blocks.
func (d *draft) addBlocks(role string, blocks [][]byte) {
	if len(blocks) > 0 {
		d.addTurn(role, "", blocks...)
	}
}

// claudeAIFiles returns what the user attached.
func claudeAIFiles(d *draft, e entry) (blocks [][]byte) {
	for o := range objects(e.object["attachments"]) {
		if text := nonEmpty(o["extracted_content"]); text != nil {
			blocks = append(blocks, textDocument(text, or(nonEmpty(o["file_name"]), `"pasted"`)))
			continue
		}
		blocks = append(blocks, textBlock(d.absentFile(o.text("file_name"))))
	}
	for o := range objects(e.object["files"]) {
		blocks = append(blocks, textBlock(d.absentFile(o.text("file_name"))))
	}
	return blocks
}
