package importer

import (
	"strconv"

	"github.com/varve-dev/varve/internal/units"
)

// content is a message's content: blocks, or one text that is no block.
type content []block

// block is a content block with what decides where it belongs.
type block struct {
	raw    []byte
	text   bool   // whether raw is a string
	calls  string // id of the call that it makes
	answer string // id of the call that it answers
}

// turn is a user message, or an assistant message with the user message that answers its calls. The answers of one
// message's calls must be in the one message after it, results first, wherever the file has them.
type turn struct {
	role       string
	id         string // the API's id of an assistant message
	content    content
	answerLine int
	results    content
	beside     content // that came in the same lines as the results
}

// dialog is what pairs the messages of one conversation.
type dialog struct {
	newest *turn // the newest assistant turn
	calls  units.Pairer[*turn]
}

// parseContent reads a content of Anthropic.
func parseContent(raw []byte) (content, error) {
	return contentOf(raw, func(raw []byte) block {
		o := parseObject(raw)
		if o == nil {
			return block{}
		}
		b := block{raw: raw}
		switch o.text("type") {
		case "tool_use":
			b.calls = o.text("id")
		case "tool_result":
			b.answer = o.text("tool_use_id")
		}
		return b
	})
}

// contentOf returns a string, or a list whose elements read makes blocks of: an empty one for what is not a block.
func contentOf(raw []byte, read func(raw []byte) block) (content, error) {
	if isString(raw) {
		return content{{raw: raw, text: true}}, nil
	}
	list := parseArray(raw)
	if list == nil {
		return nil, errNoContent
	}
	var c content
	for _, raw := range list {
		b := read(raw)
		if b.raw == nil {
			return nil, errNoContent
		}
		c = append(c, b)
	}
	return c, nil
}

// asBlocks returns the content as blocks: a string becomes a text block around its original bytes.
func (c content) asBlocks() content {
	if len(c) == 1 && c[0].text {
		return content{{raw: textBlock(c[0].raw)}}
	}
	return c
}

// raw returns the content as a message has it.
func (c content) raw() []byte {
	if len(c) == 1 && c[0].text {
		return c[0].raw
	}
	raws := make([][]byte, len(c))
	for i, b := range c {
		raws[i] = b.raw
	}
	return list(raws)
}

// callContent returns a content that is one call.
func callContent(id, name, input []byte) content {
	return content{{raw: toolUse(id, name, input), calls: object{"id": id}.text("id")}}
}

// resultContent returns a content that is one result.
func resultContent(id, result []byte, failed bool) content {
	raw := toolResult(id, result, strconv.AppendBool(nil, failed))
	return content{{raw: raw, answer: object{"id": id}.text("id")}}
}

// toolUse returns a block of Anthropic that is a call.
func toolUse(id, name, input []byte) []byte {
	return fill(`{"type":"tool_use","id":%,"name":%,"input":%}`, inString(id), inString(name), or(input, "{}"))
}

// toolResult returns a block of Anthropic that is a result; failed may be nil.
func toolResult(id, content, failed []byte) []byte {
	return fill(
		`{"type":"tool_result","tool_use_id":%,"content":%%}`, inString(id), content, member("is_error", failed),
	)
}

// dialog returns what pairs the messages of the current branch.
func (d *draft) dialog() *dialog {
	found := d.dialogs[d.branch]
	if found == nil {
		found = &dialog{}
		d.dialogs[d.branch] = found
	}
	return found
}

// addTurn adds what a role wrote. The id is the API's of an assistant message, "" if the file has none.
func (d *draft) addTurn(role, id string, c content) {
	if role == "assistant" {
		d.assistant(id, c)
	} else {
		d.user(c)
	}
}

// assistant begins an assistant message, or continues the newest one if the API's id is the same: each line has one
// block of it, and results may come in between.
func (d *draft) assistant(id string, c content) {
	dialog := d.dialog()
	if t := dialog.newest; t != nil && id != "" && t.id == id {
		t.content = append(t.content.asBlocks(), c.asBlocks()...)
	} else {
		dialog.newest = &turn{role: "assistant", id: id, content: c}
		d.place(&slot{turn: dialog.newest})
	}
	for _, b := range c {
		if b.calls != "" {
			dialog.calls.Call(b.calls, "", dialog.newest)
		}
	}
}

// user adds results to the turns that made their calls; everything else, and a result without a call, becomes another
// message.
func (d *draft) user(c content) {
	var asked *turn
	var own content
	for _, b := range c {
		t := d.dialog().caller(b)
		if t == nil {
			own = append(own, b)
			continue
		}
		if asked == nil {
			asked = t
		}
		if t.answerLine == 0 {
			t.answerLine = d.line
		}
		t.results = append(t.results, b)
	}
	if asked == nil {
		d.place(&slot{turn: &turn{role: "user", content: c}})
	} else {
		asked.beside = append(asked.beside, own...)
	}
}

// caller returns the turn whose call the block answers, nil if it answers none.
func (d *dialog) caller(b block) *turn {
	if b.answer == "" {
		return nil
	}
	t, _ := d.calls.Answer(b.answer, "")
	return t
}

// messages returns the message of a turn that began on the line, and the message that answers its calls.
func (t *turn) messages(line int) []Message {
	list := []Message{{Line: line, Body: message(t.role, t.content.raw())}}
	if len(t.results) > 0 {
		answer := append(t.results, t.beside...)
		list = append(list, Message{Line: t.answerLine, Body: message("user", answer.raw())})
	}
	return list
}
