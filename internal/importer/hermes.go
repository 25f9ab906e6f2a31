package importer

import "github.com/varve-dev/varve/internal/session"

// Hermes is Hermes' sessions.
const Hermes Source = "hermes"

// A session's messages are Chat Completions', as they are; its system prompt stands beside them, and a message of role
// session_meta is none.
var hermes = source{
	name:  Hermes,
	title: "Hermes' sessions",
	detect: func(s sample) bool {
		return s.object.has("session_id") && s.messages != nil &&
			(s.object.has("platform") || s.object.has("session_start"))
	},
	read: readHermes,
}

func readHermes(f *File, id string, data []byte) error {
	for run := range f.runs(data) {
		var messages []Message
		if prompt := said(run.object["system_prompt"]); prompt != nil {
			messages = append(messages, Message{Body: message("system", prompt), Line: 1})
		}
		messages = append(messages, f.convert(f.elements(f.list(run, "messages")), func(e entry) ([][]byte, error) {
			switch e.text("role") {
			case "":
				return nil, errNoRole
			case "session_meta":
				return nil, skipped("session_meta")
			}
			return [][]byte{e.raw}, nil
		})...)
		f.add(id, session.OpenAIChat, messages)
	}
	return nil
}
