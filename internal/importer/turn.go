package importer

import (
	"cmp"
	"maps"
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
	beside  []*piece // what came in the same records as the results
}

// piece is a block of a user message that answers no call before it. If it is a result, its call may come.
type piece struct {
	raw   []byte
	line  int
	taken bool // it is among the results of its call
}

// asked is a call, with the results before it that may be its own, the nearest one first.
type asked struct {
	turn     *turn
	id       string
	answered bool
	before   []*piece
}

// dialog is what pairs the messages of one conversation.
type dialog struct {
	newest *turn
	calls  units.Pairer[*asked]
	early  units.Early[*piece]
	asked  []*asked // calls that results may stand before
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

// textDocument returns a block of Anthropic that is a file of text.
func textDocument(text, title []byte) []byte {
	const document = `{"type":"document","source":{"type":"text","media_type":"text/plain","data":%},"title":%}`
	return fill(document, text, title)
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
		dialog.calls.Turn()
		d.place(func() []byte { return message("assistant", contentValue(t.content)) })
		t.answer = d.place(t.answered)
		dialog.newest = t
	}
	for _, raw := range content {
		if call := parseObject(raw); call.text("type") == "tool_use" && call.text("id") != "" {
			dialog.call(call.text("id"), t, len(d.slots))
		}
	}
}

// call adds a call of a turn. place is how many messages have begun.
func (g *dialog) call(id string, t *turn, place int) {
	c := &asked{turn: t, id: id, before: g.early.Call(id, place)}
	g.early.Called(id)
	g.calls.Call(id, "", c)
	if len(c.before) > 0 {
		g.asked = append(g.asked, c)
	}
}

// answered returns the message that answers the calls, nil if there is none.
func (t *turn) answered() []byte {
	if t.results == nil {
		return nil
	}
	return message("user", list(append(t.results, left(t.beside)...)))
}

// left returns the blocks of pieces that are not taken.
func left(pieces []*piece) (blocks [][]byte) {
	for _, p := range pieces {
		if !p.taken {
			blocks = append(blocks, p.raw)
		}
	}
	return blocks
}

// user adds results to the turns that made their calls; everything else, and a result without a call, becomes another
// message.
func (d *draft) user(content [][]byte) {
	dialog := d.dialog()
	var answered *turn
	var own []*piece
	results := 0
	for _, raw := range content {
		result := parseObject(raw)
		if result.text("type") != "tool_result" {
			own = append(own, &piece{raw: raw, line: d.line})
			continue
		}
		results++
		id := result.text("tool_use_id")
		if c, ok := dialog.calls.Answer(id, ""); ok {
			c.answered = true
			d.answer(c.turn, raw, d.line)
			answered = cmp.Or(answered, c.turn)
			continue
		}
		p := &piece{raw: raw, line: d.line}
		own = append(own, p)
		dialog.early.Result(id, len(d.slots), p)
	}
	if results == 0 {
		dialog.early.Said()
	}
	if answered != nil {
		answered.beside = append(answered.beside, own...)
		return
	}
	d.place(func() []byte {
		if blocks := left(own); len(blocks) > 0 || len(own) == 0 {
			return message("user", contentValue(blocks))
		}
		return nil
	})
}

// answer adds a result to the turn that made its call.
func (d *draft) answer(t *turn, result []byte, line int) {
	if t.results == nil {
		t.answer.line = line
	}
	t.results = append(t.results, result)
}

// settle puts results that stand before their calls behind them, where no other result is.
func (d *draft) settle() {
	for _, branch := range slices.Sorted(maps.Keys(d.dialogs)) {
		for _, c := range d.dialogs[branch].asked {
			free := func(p *piece) bool { return !p.taken }
			at := slices.IndexFunc(c.before, free)
			if c.answered || at < 0 {
				continue
			}
			p := c.before[at]
			p.taken = true
			d.answer(c.turn, p.raw, p.line)
			d.file.note(p.line, "the result of call %q stands before its call: it is stored behind it", c.id)
		}
	}
}
