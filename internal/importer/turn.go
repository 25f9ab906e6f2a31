package importer

import (
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

// parseContent reads a content, whose blocks convert writes as Anthropic's.
func parseContent(raw []byte, convert func(raw []byte) []byte) (content, error) {
	if isString(raw) {
		return content{{raw: raw, text: true}}, nil
	}
	list := parseArray(raw)
	if list == nil {
		return nil, errNoContent
	}
	var c content
	for _, raw := range list {
		b, ok := parseBlock(convert(raw))
		if !ok {
			return nil, errNoContent
		}
		c = append(c, b)
	}
	return c, nil
}

// asIs returns a block of Anthropic as it stands.
func asIs(raw []byte) []byte { return raw }

// parseBlock reports false for a value that is no object.
func parseBlock(raw []byte) (block, bool) {
	o := parseObject(raw)
	b := block{raw: raw}
	switch o.text("type") {
	case "tool_use":
		b.calls = o.text("id")
	case "tool_result":
		b.answer = o.text("tool_use_id")
	}
	return b, o != nil
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

// contentOf returns a content that is one block.
func contentOf(raw []byte) content {
	b, _ := parseBlock(raw)
	return content{b}
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
