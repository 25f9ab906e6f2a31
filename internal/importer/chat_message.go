package importer

// chatMessage is a message of OpenAI Chat that is put together from JSON values as a file has them.
type chatMessage struct {
	role      string
	answers   []byte // the id of the call that the message answers; nil for none
	content   []byte // nil if the message has no content, or has it in blocks
	blocks    [][]byte
	reasoning []byte // a string literal; nil for none
	calls     [][]byte
	more      []byte // further members, each after a comma
}

// body returns nil if the message answers no call and has no content, no reasoning and no call.
func (m *chatMessage) body() []byte {
	content := or(m.content, blocksOrText(m.blocks))
	switch {
	case m.answers != nil:
		return resultMessage(m.answers, or(content, `""`))
	case content != nil:
	case len(m.calls) > 0:
		content = []byte("null")
	case m.reasoning != nil:
		content = []byte(`""`)
	default:
		return nil
	}
	var calls []byte
	if len(m.calls) > 0 {
		calls = list(m.calls)
	}
	return fill(
		`{"role":%,"content":%%%%}`, quote(m.role), content, member("reasoning_content", m.reasoning),
		member("tool_calls", calls), m.more,
	)
}

// addText adds a text block; what is not a string is written as one.
func (m *chatMessage) addText(text []byte) { m.blocks = append(m.blocks, textBlock(inString(text))) }

// addTexts adds the strings that are not empty.
func (m *chatMessage) addTexts(all ...[]byte) {
	for _, text := range all {
		if nonEmpty(text) != nil {
			m.addText(text)
		}
	}
}

// addImages adds an image block for each URL, which may hold the image's bytes.
func (m *chatMessage) addImages(urls ...[]byte) {
	for _, url := range urls {
		m.blocks = append(m.blocks, fill(`{"type":"image_url","image_url":{"url":%}}`, inString(url)))
	}
}

// think adds to the reasoning.
func (m *chatMessage) think(text ...[]byte) {
	m.reasoning = nonEmpty(concat(append([][]byte{m.reasoning}, text...)...))
}

// addCalls adds the calls of a list, whose members have these names.
func (m *chatMessage) addCalls(list []byte, id, name, arguments string) {
	for o := range objects(list) {
		m.addCall(o[id], o[name], o[arguments])
	}
}

// addCall adds a call. The format wants the arguments in a string.
func (m *chatMessage) addCall(id, name, arguments []byte) {
	const call = `{"id":%,"type":"function","function":{"name":%,"arguments":%}}`
	m.calls = append(m.calls, fill(call, inString(id), inString(name), inString(or(arguments, "{}"))))
}

// chatResult writes a result.
func chatResult(id, content []byte) []byte { return resultMessage(id, resultContent(content)) }

// resultContent returns a result's content: texts alone stay blocks, all else becomes a string.
func resultContent(content []byte) []byte {
	var texts [][]byte
	for o := range objects(content) {
		if o.text("type") != "text" || !isString(o["text"]) {
			return inString(content)
		}
		texts = append(texts, textBlock(o["text"]))
	}
	if texts == nil {
		return inString(content)
	}
	return list(texts)
}

func resultMessage(id, content []byte) []byte {
	return fill(`{"role":"tool","tool_call_id":%,"content":%}`, inString(id), content)
}

// message returns a message of OpenAI Chat or Anthropic around its content.
func message(role string, content []byte) []byte {
	return fill(`{"role":"%","content":%}`, []byte(role), content)
}

func textBlock(text []byte) []byte { return fill(`{"type":"text","text":%}`, text) }

// blocksOrText returns a content of these blocks: the string alone if a text is the only block, nil without blocks.
func blocksOrText(blocks [][]byte) []byte {
	switch len(blocks) {
	case 0:
		return nil
	case 1:
		if o := parseObject(blocks[0]); o.text("type") == "text" && isString(o["text"]) {
			return o["text"]
		}
	}
	return list(blocks)
}

// textBlocks returns those of the blocks that are texts.
func textBlocks(blocks [][]byte) (found [][]byte) {
	for _, block := range blocks {
		if parseObject(block).text("type") == "text" {
			found = append(found, block)
		}
	}
	return found
}

// texts returns the texts of blocks as string literals.
func texts(blocks [][]byte) (found [][]byte) {
	for _, block := range textBlocks(blocks) {
		found = append(found, parseObject(block)["text"])
	}
	return found
}
