package importer

import "errors"

// pi's messages are written as Anthropic's, around their strings, arguments and images as they stand.
//
//   - Entries are a tree: the branch that the last one is on is the conversation
//     (https://github.com/earendil-works/pi, docs/session.md).
//   - A compaction does not cut the log: its summary and what it kept are not read.
//   - A turn that was aborted before the model wrote anything is skipped.
//   - A command that a person ran in the shell is a user message with the command and its output, unless it was kept
//     from the model.
//   - details of a result, usage and the like repeat the content or are not for the model.
var pi = source{
	name:   Pi,
	title:  "pi's sessions",
	detect: marked("type=session id cwd", "type=message message.role=toolResult|bashExecution"),
	into:   Anthropic,
	tree:   &tree{id: "id", parent: "parentId", spoke: piSpoke},
	record: byType(map[string]record{
		"message": func(d *draft, e entry) error { return addPi(d, parseObject(e.object["message"])) },
		"custom_message": func(d *draft, e entry) error {
			return addPi(d, object{"role": quote("custom"), "content": e.object["content"]})
		},
	}),
}

func piSpoke(o object) bool { return o.fits("type=message|custom_message") }

func addPi(d *draft, m object) error {
	role := m.text("role")
	switch {
	case role == "":
		return errNoRole
	case role == "bashExecution" && m.is("excludeFromContext"):
		return skipped("bashExecution (kept from the model)")
	case role == "bashExecution":
		d.addTurn("user", "", shellText(m))
		return nil
	case !piRoles[role]:
		return skipped("message of " + role)
	}
	content, err := parseContent(m["content"])
	for i, raw := range content {
		content[i] = piBlock(raw)
	}
	switch {
	case err != nil:
		return err
	case role == "assistant" && len(content) == 0:
		return skipped("assistant " + m.text("stopReason") + " (empty)")
	case role != "toolResult":
		d.addTurn(role, "", content...)
	case !isString(m["toolCallId"]):
		return errors.New("a toolResult without a toolCallId")
	default:
		d.addTurn("user", "", toolResult(m["toolCallId"], contentValue(content), boolean(m.is("isError"))))
	}
	return nil
}

// piRoles are the roles of the messages that have a content.
var piRoles = set("user", "custom", "assistant", "toolResult")

// piBlock writes a block of pi's as Anthropic's. A block of a type that is not pi's is kept as it stands.
func piBlock(raw []byte) []byte {
	o := parseObject(raw)
	kind := o.text("type")
	switch {
	case kind == "text" && isString(o["text"]):
		return textBlock(o["text"])
	case kind == "thinking" && o.is("redacted") && isString(o["thinkingSignature"]):
		return fill(`{"type":"redacted_thinking","data":%}`, o["thinkingSignature"])
	case kind == "thinking" && isString(o["thinking"]) && isString(o["thinkingSignature"]):
		return fill(`{"type":"thinking","thinking":%,"signature":%}`, o["thinking"], o["thinkingSignature"])
	case kind == "thinking" && isString(o["thinking"]):
		return fill(`{"type":"thinking","thinking":%}`, o["thinking"])
	case kind == "toolCall" && isString(o["id"]) && isString(o["name"]) && parseObject(o["arguments"]) != nil:
		return toolUse(o["id"], o["name"], o["arguments"])
	case kind == "image" && isString(o["data"]) && isString(o["mimeType"]):
		return fill(`{"type":"image","source":{"type":"base64","media_type":%,"data":%}}`, o["mimeType"], o["data"])
	}
	return raw
}

// shellText returns a command and what it printed, as a person sees them in a terminal.
func shellText(m object) []byte {
	text := concat(quote("$ "), m["command"], quote("\n"), m["output"])
	code := string(m["exitCode"])
	switch {
	case m.is("cancelled"):
		text = concat(text, quote("\n(cancelled)"))
	case m.has("exitCode") && code != "0":
		text = concat(text, quote("\n(exit code "+code+")"))
	}
	if m.is("truncated") {
		text = concat(text, quote("\n(the output was cut)"))
	}
	return text
}
