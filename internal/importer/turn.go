package importer

import "github.com/varve-dev/varve/internal/units"

// content is a message's content: a string or blocks.
type content struct {
	text   []byte // the string as it is written, quotes included; nil for blocks
	blocks []block
}

// block is a content block with what decides where it belongs.
type block struct {
	raw    []byte
	calls  string // id of the call that it makes
	answer string // id of the call that it answers
}

func parseContent(raw []byte) (content, bool) {
	if isString(raw) {
		return content{text: raw}, true
	}
	list := parseArray(raw)
	if list == nil {
		return content{}, false
	}
	var c content
	for _, raw := range list {
		o := parseObject(raw)
		if o == nil {
			return content{}, false
		}
		b := block{raw: raw}
		switch o.text("type") {
		case "tool_use":
			b.calls = o.text("id")
		case "tool_result":
			b.answer = o.text("tool_use_id")
		}
		c.blocks = append(c.blocks, b)
	}
	return c, true
}

// asBlocks returns the content as blocks: a string becomes a text block around its original bytes.
func (c content) asBlocks() []block {
	if c.text == nil {
		return c.blocks
	}
	return []block{{raw: textBlock(c.text)}}
}

// raw returns the content as a message has it.
func (c content) raw() []byte {
	if c.text != nil {
		return c.text
	}
	raws := make([][]byte, len(c.blocks))
	for i, b := range c.blocks {
		raws[i] = b.raw
	}
	return list(raws)
}

// chain is a conversation being put together.
type chain struct {
	turns  []*turn
	newest *turn // the newest assistant turn
	calls  units.Pairer[*turn]
}

// turn is a user message, or an assistant message with the user message that answers its calls. The answers of one
// message's calls must be in the one message after it, results first, wherever the file has them.
type turn struct {
	role       string
	id         string // the API's id of an assistant message
	line       int
	content    content
	answerLine int
	results    []block
	beside     []block // that came in the same lines as the results
}

func (ch *chain) add(line int, r record) {
	if r.kind == "assistant" {
		ch.assistant(line, r.message.text("id"), r.content)
	} else {
		ch.user(line, r.content)
	}
}

// assistant begins an assistant message, or continues the newest one if the API's id is the same: each line has one
// block of it, and results may come in between.
func (ch *chain) assistant(line int, id string, c content) {
	if t := ch.newest; t != nil && id != "" && t.id == id {
		t.content = content{blocks: append(t.content.asBlocks(), c.asBlocks()...)}
	} else {
		ch.newest = &turn{role: "assistant", id: id, line: line, content: c}
		ch.turns = append(ch.turns, ch.newest)
	}
	for _, b := range c.blocks {
		if b.calls != "" {
			ch.calls.Call(b.calls, "", ch.newest)
		}
	}
}

// user adds results to the turns that made their calls; everything else, and a result without a call, becomes another
// message.
func (ch *chain) user(line int, c content) {
	var asked *turn
	var own []block
	for _, b := range c.blocks {
		if t, ok := ch.answer(b); ok {
			if asked == nil {
				asked = t
			}
			if t.answerLine == 0 {
				t.answerLine = line
			}
			t.results = append(t.results, b)
			continue
		}
		own = append(own, b)
	}
	switch {
	case asked == nil:
		ch.turns = append(ch.turns, &turn{role: "user", line: line, content: c})
	case len(own) > 0:
		asked.beside = append(asked.beside, own...)
	}
}

// answer returns the turn whose call the block answers, if it is a result.
func (ch *chain) answer(b block) (*turn, bool) {
	if b.answer == "" {
		return nil, false
	}
	return ch.calls.Answer(b.answer, "")
}

func (ch *chain) messages() []Message {
	var list []Message
	for _, t := range ch.turns {
		list = append(list, Message{Line: t.line, Body: message(t.role, t.content.raw())})
		if len(t.results) > 0 {
			answer := content{blocks: append(t.results, t.beside...)}
			list = append(list, Message{Line: t.answerLine, Body: message("user", answer.raw())})
		}
	}
	return list
}

// message returns a message of OpenAI Chat or Anthropic around its content.
func message(role string, content []byte) []byte {
	return fill(`{"role":"%","content":%}`, []byte(role), content)
}

// textBlock returns a block that both Chat Completions and Anthropic have.
func textBlock(text []byte) []byte { return fill(`{"type":"text","text":%}`, text) }
