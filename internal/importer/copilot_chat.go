package importer

// An export of VS Code's chat ("Chat: Export Chat…") has requests, each with what the user wrote and the response.
// What the model wrote and called in each round, and the results, are in the result's metadata; of a response without
// rounds the shown texts are read.
var copilotChat = source{
	name:   CopilotChat,
	title:  "Copilot Chat's exports (VS Code)",
	detect: marked("requests[] responderUsername|requesterUsername|initialLocation|sessionId"),
	into:   OpenAIChat,
	runs:   layout{lists: []string{"requests"}},
	record: copilotChatRequest,
}

func copilotChatRequest(d *draft, e entry) error {
	d.at = moment(e.object["timestamp"])
	user := &chatMessage{role: "user"}
	for variable := range objects(e.at("variableData.variables")) {
		name := variable.text("name")
		if text := nonEmpty(variable["value"]); text != nil {
			user.addText(concat(quote("["+name+"]\n"), text))
			continue
		}
		user.addText(quote("[attached " + name + "]"))
		d.note("the attachment %q is not in the export: a text stands in its place", name)
	}
	user.addTexts(e.first("message.text", "message"))
	if err := d.addChat(user); err != nil {
		return err
	}
	rounds := e.at("result.metadata.toolCallRounds")
	inRounds := len(parseArray(rounds)) > 0
	shown := copilotChatShown(d, e.object["response"], inRounds)
	if body := shown.body(); body != nil && !inRounds {
		d.add(body)
	}
	results := parseObject(e.at("result.metadata.toolCallResults"))
	for round := range objects(rounds) {
		said := &chatMessage{role: "assistant"}
		said.addTexts(round["response"])
		said.think(round.first("thinking.text", "thinking"))
		said.addCalls(round["toolCalls"], "id", "name", "arguments")
		if body := said.body(); body != nil {
			d.add(body)
		}
		for call := range objects(round["toolCalls"]) {
			if result := results[call.text("id")]; has(result) {
				d.add(resultMessage(call["id"], copilotChatResult(result)))
			}
		}
	}
	return nil
}

// copilotChatShown returns what a response showed: texts, and what the model thought. Calls are in its rounds, if it
// has any. What stands between the texts for the interface alone is not read.
func copilotChatShown(d *draft, response []byte, inRounds bool) *chatMessage {
	said := &chatMessage{role: "assistant"}
	var text []byte
	for part := range objects(response) {
		switch kind := part.text("kind"); kind {
		case "", "markdownContent":
			text = concat(text, part.first("content.value", "value.value", "value"))
		case "inlineReference":
			name := part.first("name", "inlineReference.name", "inlineReference.path")
			text = concat(text, quote("`"), name, quote("`"))
		case "thinking":
			said.think(part["value"])
		case "undoStop", "codeblockUri", "mcpServersStarting", "prepareToolInvocation", "progressTaskSerialized":
		case "toolInvocationSerialized":
			if !inRounds {
				d.leavePart(kind)
			}
		default:
			d.leavePart(kind)
		}
	}
	said.addTexts(text)
	return said
}

// copilotChatResult returns the texts of a result, or its JSON.
func copilotChatResult(raw []byte) []byte {
	var texts [][]byte
	for part := range objects(parseObject(raw)["content"]) {
		if !isString(part["value"]) {
			return inString(raw)
		}
		texts = append(texts, part["value"])
	}
	if texts == nil {
		return inString(raw)
	}
	return concat(texts...)
}
