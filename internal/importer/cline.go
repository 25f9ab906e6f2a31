package importer

// A session's messages are Anthropic's, but for two blocks: a file that the user attached, which becomes a document,
// and the content of a result where it is JSON of the tool's own, which becomes the text that it is.
var cline = source{
	name:   Cline,
	title:  "Cline's sessions",
	detect: marked("sessionId messages agent|system_prompt"),
	into:   Anthropic,
	runs:   layout{lists: []string{"messages"}, prompt: "system_prompt"},
	record: clineMessage,
}

func clineMessage(d *draft, e entry) error {
	role, content := e.text("role"), e.object["content"]
	blocks := parseArray(content)
	switch {
	case role == "":
		return errNoRole
	case blocks != nil:
		for i, raw := range blocks {
			blocks[i] = clineBlock(raw)
		}
		content = list(blocks)
	case !isString(content):
		return skipped(role + " without content")
	}
	d.add(message(role, content))
	return nil
}

func clineBlock(raw []byte) []byte {
	o := parseObject(raw)
	switch o.text("type") {
	case "file":
		return textDocument(inString(o["content"]), inString(o["path"]))
	case "tool_use":
		return toolUse(o["id"], o["name"], o["input"])
	case "tool_result":
		content := o["content"]
		if !resultBlocks(content) {
			content = inString(content)
		}
		if !o.is("is_error") {
			delete(o, "is_error")
		}
		return toolResult(o["tool_use_id"], content, o["is_error"])
	}
	return raw
}

// resultBlocks reports whether a content is a list of blocks as Anthropic's results have them.
func resultBlocks(content []byte) bool {
	for o := range objects(content) {
		switch o.text("type") {
		case "text", "image", "document", "search_result":
		default:
			return false
		}
	}
	return parseArray(content) != nil
}
