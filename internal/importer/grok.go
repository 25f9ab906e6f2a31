package importer

// The lines become Responses items, which have a place for encrypted reasoning and for the calls that the provider
// itself makes.
var grok = source{
	name:  Grok,
	title: "Grok's chat histories",
	detect: marked(
		"type=assistant content model_id|model_fingerprint", "type=tool_result tool_call_id content",
		"type=backend_tool_call kind",
	),
	likely:   marked("type=user content"),
	into:     OpenAIResponses,
	required: "type",
	open:     perRecord(grokItems),
}

func grokItems(e entry) ([][]byte, error) {
	content := e.object["content"]
	switch kind := e.text("type"); kind {
	case "system", "user":
		if !has(content) {
			return nil, skipped(kind + " without content")
		}
		return [][]byte{item(kind, grokContent(content))}, nil
	case "reasoning":
		return [][]byte{e.raw}, nil
	case "assistant":
		return grokAnswer(e)
	case "tool_result":
		const result = `{"type":"function_call_output","call_id":%,"output":%}`
		return [][]byte{fill(result, inString(e.object["tool_call_id"]), inString(content))}, nil
	case "backend_tool_call":
		return grokBackend(parseObject(e.object["kind"]))
	default:
		return nil, skipped(kind)
	}
}

// grokAnswer returns the model's text and its calls.
func grokAnswer(e entry) ([][]byte, error) {
	var items [][]byte
	if text := nonEmpty(e.object["content"]); text != nil {
		text = fill(`[{"type":"output_text","text":%,"annotations":[]}]`, text)
		items = append(items, item("assistant", text))
	}
	for o := range objects(e.object["tool_calls"]) {
		items = append(items, fill(
			`{"type":"function_call","call_id":%,"name":%,"arguments":%}`,
			inString(o["id"]), inString(o["name"]), inString(o["arguments"]),
		))
	}
	if items == nil {
		return nil, skipped("assistant without content")
	}
	return items, nil
}

// grokContent returns a user's content in the API's blocks.
func grokContent(raw []byte) []byte {
	blocks := parseArray(raw)
	if blocks == nil {
		return inString(raw)
	}
	for i, b := range blocks {
		o := parseObject(b)
		switch {
		case o.text("type") == "text":
			blocks[i] = fill(`{"type":"input_text","text":%}`, inString(o["text"]))
		case o.text("type") == "image" && isString(o["url"]):
			blocks[i] = fill(`{"type":"input_image","image_url":%,"detail":"auto"}`, o["url"])
		}
	}
	return list(blocks)
}

// grokBackend returns a search that the provider made by itself.
func grokBackend(call object) ([][]byte, error) {
	if call.text("tool_type") != "web_search" || !call.has("id") {
		return nil, skipped("backend_tool_call of " + call.text("tool_type"))
	}
	status := call["status"]
	if !isString(status) {
		status = []byte(`"completed"`)
	}
	const search = `{"type":"web_search_call","id":%,"status":%%}`
	return [][]byte{fill(search, inString(call["id"]), status, member("action", call["action"]))}, nil
}
