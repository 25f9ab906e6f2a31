package importer

import "github.com/varve-dev/varve/internal/session"

// A session's messages are OpenAI Chat's, as they are; its system prompt is beside them, and a record of role
// session_meta is not a message.
var hermes = source{
	name:  Hermes,
	title: "Hermes' sessions",
	detect: func(s sample) bool {
		return s.object.has("session_id") && s.messages != nil && s.object.first("platform", "session_start") != nil
	},
	format:   session.OpenAIChat,
	required: "role",
	runs:     &layout{list: listed("messages"), prompt: "system_prompt"},
	open: perRecord(func(e entry) ([][]byte, error) {
		if e.text("role") == "session_meta" {
			return nil, skipped("session_meta")
		}
		return asItIs(e)
	}),
}
