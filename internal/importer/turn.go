package importer

import (
	"slices"

	"github.com/varve-dev/varve/internal/units"
)

// turn is an assistant message with the user message that answers its calls. The answers of one message's calls must be
// in the one message after it, results first, wherever the file has them. A content is a list of blocks, or of one
// string literal.
type turn struct {
	id      string // the API's id of the assistant message
	content [][]byte
	answer  *slot
	results [][]byte
	beside  [][]byte // what came in the same records as the results
}

// dialog is what pairs the messages of one conversation.
type dialog struct {
	newest *turn
	calls  units.Pairer[*turn]
}

// parseContent reads a content of Anthropic.
func parseContent(raw []byte) ([][]byte, error) {
	if isString(raw) {
		return [][]byte{raw}, nil
	}
	blocks := parseArray(raw)
	noBlock := func(raw []byte) bool { return raw[0] != '{' }
	if blocks == nil || slices.ContainsFunc(blocks, noBlock) {
		return nil, errNoContent
	}
	return blocks, nil
}

// asBlocks returns a content as blocks: a string becomes a text block around its original bytes.
func asBlocks(content [][]byte) [][]byte {
	if len(content) == 1 && isString(content[0]) {
		return [][]byte{textBlock(content[0])}
	}
	return content
}

// contentValue returns a content as a message has it.
func contentValue(content [][]byte) []byte {
	if len(content) == 1 && isString(content[0]) {
		return content[0]
	}
	return list(content)
}

// toolUse returns a block of Anthropic that is a call.
func toolUse(id, name, input []byte) []byte {
	return fill(`{"type":"tool_use","id":%,"name":%,"input":%}`, inString(id), inString(name), or(input, "{}"))
}

// toolResult returns a block of Anthropic that is a result. Without failed, a JSON boolean, it does not tell.
func toolResult(id, content, failed []byte) []byte {
	const result = `{"type":"tool_result","tool_use_id":%,"content":%%}`
	return fill(result, inString(id), content, member("is_error", failed))
}

// dialog returns what pairs the messages of the current branch.
func (d *draft) dialog() *dialog {
	if d.dialogs[d.branch] == nil {
		d.dialogs[d.branch] = &dialog{}
	}
	return d.dialogs[d.branch]
}

// addTurn adds what a role wrote. The id is the API's of an assistant message, "" if the file has none.
func (d *draft) addTurn(role, id string, content ...[]byte) {
	if role == "assistant" {
		d.assistant(id, content)
	} else {
		d.user(content)
	}
}

// assistant begins an assistant message, or continues the newest one if the API's id is the same: each line has one
// block of it, and results may come in between.
func (d *draft) assistant(id string, content [][]byte) {
	dialog := d.dialog()
	t := dialog.newest
	if t != nil && id != "" && t.id == id {
		t.content = append(asBlocks(t.content), asBlocks(content)...)
	} else {
		t = &turn{id: id, content: content}
		d.place(func() []byte { return message("assistant", contentValue(t.content)) })
		t.answer = d.place(t.answered)
		dialog.newest = t
	}
	for _, raw := range content {
		if call := parseObject(raw); call.text("type") == "tool_use" && call.text("id") != "" {
			dialog.calls.Call(call.text("id"), "", t)
		}
	}
}

// answered returns the message that answers the calls, nil if there is none.
func (t *turn) answered() []byte {
	if t.results == nil {
		return nil
	}
	return message("user", list(append(t.results, t.beside...)))
}

// user adds results to the turns that made their calls; everything else, and a result without a call, becomes another
// message.
func (d *draft) user(content [][]byte) {
	var asked *turn
	var own [][]byte
	for _, raw := range content {
		var t *turn
		if result := parseObject(raw); result.text("type") == "tool_result" {
			t, _ = d.dialog().calls.Answer(result.text("tool_use_id"), "")
		}
		if t == nil {
			own = append(own, raw)
			continue
		}
		if asked == nil {
			asked = t
		}
		if t.results == nil {
			t.answer.line = d.line
		}
		t.results = append(t.results, raw)
	}
	if asked == nil {
		d.add(message("user", contentValue(content)))
	} else {
		asked.beside = append(asked.beside, own...)
	}
}
