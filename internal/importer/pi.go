package importer

import (
	"errors"

	"github.com/varve-dev/varve/internal/session"
)

// Pi is the sessions of the coding agent pi: JSON lines.
const Pi Source = "pi"

var pi = source{
	name:   Pi,
	title:  "pi's sessions",
	detect: func(s sample) bool { return piRecord(s.object) },
	read:   readPi,
}

// piRecord recognises a session's header or a message of pi's own shape.
func piRecord(o object) bool {
	switch o.text("type") {
	case "session":
		return o.has("id") && o.has("cwd")
	case "message":
		switch parseObject(o["message"]).text("role") {
		case "toolResult", "bashExecution":
			return true
		}
	}
	return false
}

// readPi writes pi's messages as Anthropic's, around their strings, arguments and images as they stand.
//
//   - A compaction does not cut the log: its summary and what it kept are not read.
//   - A turn that was aborted before the model wrote anything is skipped.
//   - A command that a person ran in the shell is a user message with the command and its output, unless it was kept
//     from the model.
//   - details of a result, usage and the like repeat the content or are not for the model.
func readPi(f *File, id string, data []byte) error {
	ch := &chain{}
	f.each(f.entries(data), func(e entry) error { return addPi(ch, e) })
	f.add(id, session.Anthropic, ch.messages())
	return nil
}

func addPi(ch *chain, e entry) error {
	switch kind := e.text("type"); kind {
	case "":
		return errNoType
	case "message":
		return addPiMessage(ch, e.line, parseObject(e.object["message"]))
	case "custom_message":
		return addPiContent(ch, e.line, "user", e.object["content"])
	default:
		return skipped(kind)
	}
}

func addPiMessage(ch *chain, line int, m object) error {
	switch role := m.text("role"); role {
	case "":
		return errNoRole
	case "user", "custom":
		return addPiContent(ch, line, "user", m["content"])
	case "assistant":
		if list := parseArray(m["content"]); list != nil && len(list) == 0 {
			return skipped("assistant " + m.text("stopReason") + " (empty)")
		}
		return addPiContent(ch, line, role, m["content"])
	case "toolResult":
		return addPiResult(ch, line, m)
	case "bashExecution":
		if m.is("excludeFromContext") {
			return skipped("bashExecution (kept from the model)")
		}
		ch.user(line, content{text: shellText(m)})
		return nil
	default:
		return skipped("message of " + role)
	}
}

func addPiContent(ch *chain, line int, role string, raw []byte) error {
	c, err := piBlocks(raw)
	switch {
	case err != nil:
		return err
	case role == "assistant":
		ch.assistant(line, "", c)
	default:
		ch.user(line, c)
	}
	return nil
}

func addPiResult(ch *chain, line int, m object) error {
	c, err := piBlocks(m["content"])
	switch {
	case err != nil:
		return err
	case !isString(m["toolCallId"]):
		return errors.New("a toolResult without a toolCallId")
	}
	failed := "false"
	if m.is("isError") {
		failed = "true"
	}
	raw := fill(
		`{"type":"tool_result","tool_use_id":%,"content":%,"is_error":%}`, m["toolCallId"], c.raw(), []byte(failed),
	)
	ch.user(line, content{blocks: []block{{raw: raw, answer: m.text("toolCallId")}}})
	return nil
}

// piBlocks writes pi's blocks as Anthropic's.
func piBlocks(raw []byte) (c content, err error) {
	if isString(raw) {
		return content{text: raw}, nil
	}
	list := parseArray(raw)
	if list == nil {
		return c, errNoContent
	}
	for _, raw := range list {
		b, ok := piBlock(parseObject(raw))
		if !ok {
			b.raw = raw
		}
		c.blocks = append(c.blocks, b)
	}
	return c, nil
}

// piBlock reports false for a block of a type that is not pi's: it is kept as it stands.
func piBlock(o object) (b block, ok bool) {
	kind := o.text("type")
	switch {
	case kind == "text" && isString(o["text"]):
		b.raw = textBlock(o["text"])
	case kind == "thinking" && o.is("redacted") && isString(o["thinkingSignature"]):
		b.raw = fill(`{"type":"redacted_thinking","data":%}`, o["thinkingSignature"])
	case kind == "thinking" && isString(o["thinking"]) && isString(o["thinkingSignature"]):
		b.raw = fill(`{"type":"thinking","thinking":%,"signature":%}`, o["thinking"], o["thinkingSignature"])
	case kind == "thinking" && isString(o["thinking"]):
		b.raw = fill(`{"type":"thinking","thinking":%}`, o["thinking"])
	case kind == "toolCall" && isString(o["id"]) && isString(o["name"]) && parseObject(o["arguments"]) != nil:
		b.raw = fill(`{"type":"tool_use","id":%,"name":%,"input":%}`, o["id"], o["name"], o["arguments"])
		b.calls = o.text("id")
	case kind == "image" && isString(o["data"]) && isString(o["mimeType"]):
		b.raw = fill(`{"type":"image","source":{"type":"base64","media_type":%,"data":%}}`, o["mimeType"], o["data"])
	default:
		return b, false
	}
	return b, true
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
