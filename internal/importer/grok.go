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
	likely: marked("type=user content"),
	into:   OpenAIResponses,
	record: byType(map[string]record{
		"system":            grokPrompt,
		"user":              grokPrompt,
		"assistant":         grokAnswer,
		"tool_result":       grokResult,
		"backend_tool_call": grokBackend,
		"reasoning": func(d *draft, e entry) error {
			d.add(e.raw)
			return nil
		},
	}),
}

func grokPrompt(d *draft, e entry) error {
	if !e.has("content") {
		return skipped(e.text("type") + " without content")
	}
	d.add(item(e.text("type"), grokContent(e.object["content"])))
	return nil
}

func grokResult(d *draft, e entry) error {
	const result = `{"type":"function_call_output","call_id":%,"output":%}`
	d.add(fill(result, inString(e.object["tool_call_id"]), inString(e.object["content"])))
	return nil
}

// grokAnswer adds the model's text and its calls.
func grokAnswer(d *draft, e entry) error {
	var items [][]byte
	if text := nonEmpty(e.object["content"]); text != nil {
		text = fill(`[{"type":"output_text","text":%,"annotations":[]}]`, text)
		items = append(items, item("assistant", text))
	}
	for o := range objects(e.object["tool_calls"]) {
		const call = `{"type":"function_call","call_id":%,"name":%,"arguments":%}`
		items = append(items, fill(call, inString(o["id"]), inString(o["name"]), inString(o["arguments"])))
	}
	if items == nil {
		return skipped("assistant without content")
	}
	d.add(items...)
	return nil
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

// grokBackend adds a search that the provider made by itself.
func grokBackend(d *draft, e entry) error {
	call := parseObject(e.object["kind"])
	if call.text("tool_type") != "web_search" || !call.has("id") {
		return skipped("backend_tool_call of " + call.text("tool_type"))
	}
	status := call["status"]
	if !isString(status) {
		status = []byte(`"completed"`)
	}
	const search = `{"type":"web_search_call","id":%,"status":%%}`
	d.add(fill(search, inString(call["id"]), status, member("action", call["action"])))
	return nil
}
