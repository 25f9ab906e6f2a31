package importer

// A session's messages are OpenAI Chat's, as they are; its system prompt is beside them, and a record of role
// session_meta is not a message.
var hermes = source{
	name:   Hermes,
	title:  "Hermes' sessions",
	detect: marked("session_id messages[] platform|session_start"),
	into:   OpenAIChat,
	runs:   layout{lists: []string{"messages"}, prompt: "system_prompt"},
	record: func(d *draft, e entry) error {
		if e.text("role") == "session_meta" {
			return skipped("session_meta")
		}
		return asItIs(d, e)
	},
}
