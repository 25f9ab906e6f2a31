package importer

import "errors"

// A record's message is a Gemini content, and is read as it stands.
var qwen = source{
	name:     Qwen,
	title:    "Qwen Code's sessions",
	detect:   marked("uuid message.parts[]"),
	into:     Gemini,
	required: "type",
	open:     perRecord(qwenContent),
}

func qwenContent(e entry) ([][]byte, error) {
	switch kind := e.text("type"); kind {
	case "user", "assistant", "tool_result":
	default:
		return nil, skipped(kind)
	}
	if parseArray(e.at("message.parts")) == nil {
		return nil, errors.New("a record without a message that has parts")
	}
	return [][]byte{e.object["message"]}, nil
}
