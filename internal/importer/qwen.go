package importer

import "errors"

// A record's message is a Gemini content, and is read as it stands.
var qwen = source{
	name:   Qwen,
	title:  "Qwen Code's sessions",
	detect: marked("uuid message.parts[]"),
	into:   Gemini,
	tree: &tree{
		id: "uuid", parent: "parentUuid",
		spoke: func(o object) bool { return o.fits("type=user|assistant|tool_result") },
	},
	record: byType(map[string]record{"user": qwenContent, "assistant": qwenContent, "tool_result": qwenContent}),
}

func qwenContent(d *draft, e entry) error {
	if parseArray(e.at("message.parts")) == nil {
		return errors.New("a record without a message that has parts")
	}
	d.add(e.object["message"])
	return nil
}
