package importer

import (
	"fmt"

	"github.com/varve-dev/varve/internal/session"
)

// Cursor is Cursor's transcripts: JSON lines.
const Cursor Source = "cursor"

// A line has a role and a message of Anthropic's blocks, whose calls have no id. They get the ids of the results in the
// next message, in their order; a call without a result gets one made of its place.
var cursor = source{
	name:  Cursor,
	title: "Cursor's transcripts",
	detect: func(s sample) bool {
		return s.object.has("role") && !s.object.has("type") && parseObject(s.object["message"]).has("content")
	},
	read: readCursor,
}

func readCursor(f *File, id string, data []byte) error {
	var turns []Message
	messages := f.convert(f.entries(data), func(e entry) ([][]byte, error) {
		content := parseObject(e.object["message"])["content"]
		switch {
		case e.text("role") == "":
			return nil, errNoRole
		case !isString(content) && parseArray(content) == nil:
			return nil, errNoContent
		}
		return [][]byte{message(e.text("role"), content)}, nil
	})
	for i := range messages {
		var answers [][]byte
		if i+1 < len(messages) {
			answers = resultIDs(messages[i+1].Body)
		}
		turns = append(turns, Message{Body: withCallIDs(messages[i], answers), Line: messages[i].Line})
	}
	f.add(id, session.Anthropic, turns)
	return nil
}

// resultIDs returns the ids of the calls that a message's results answer, as literals.
func resultIDs(body []byte) [][]byte {
	var ids [][]byte
	for _, raw := range parseArray(parseObject(body)["content"]) {
		if o := parseObject(raw); o.text("type") == "tool_result" && filled(o["tool_use_id"]) {
			ids = append(ids, o["tool_use_id"])
		}
	}
	return ids
}

// withCallIDs gives ids to a message's calls that have none.
func withCallIDs(m Message, ids [][]byte) []byte {
	o := parseObject(m.Body)
	blocks := parseArray(o["content"])
	made := false
	for i, raw := range blocks {
		call := parseObject(raw)
		if call.text("type") != "tool_use" || filled(call["id"]) {
			continue
		}
		id := quote(fmt.Sprintf("call-%d-%d", m.Line, i+1))
		if len(ids) > 0 {
			id, ids = ids[0], ids[1:]
		}
		blocks[i] = fill(
			`{"type":"tool_use","id":%,"name":%,"input":%}`, id, inString(call["name"]), orEmpty(call["input"]),
		)
		made = true
	}
	if !made {
		return m.Body
	}
	return message(o.text("role"), list(blocks))
}
