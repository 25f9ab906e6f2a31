package importer

import "fmt"

// A line has a role and a message of Anthropic's blocks, whose calls have no id. They get the ids of the results in the
// next message, in their order; a call without a result gets one made of its place.
var cursor = source{
	name:     Cursor,
	title:    "Cursor's transcripts",
	detect:   marked("role !type message.content"),
	into:     Anthropic,
	required: "role",
	read:     readCursor,
}

// readCursor reads all messages before it gives ids to their calls.
func readCursor(f *File, id string, data []byte) error {
	d := f.newDraft(nil)
	d.read(f.entries(data), cursorMessage)
	for i, s := range d.slots {
		var answers [][]byte
		if i+1 < len(d.slots) {
			answers = resultIDs(d.slots[i+1].body)
		}
		s.body = withCallIDs(s, answers)
	}
	d.finish(id)
	return nil
}

func cursorMessage(e entry) ([][]byte, error) {
	content := e.at("message.content")
	if !isString(content) && parseArray(content) == nil {
		return nil, errNoContent
	}
	return [][]byte{message(e.text("role"), content)}, nil
}

// resultIDs returns the ids of the calls that a message's results answer, as literals.
func resultIDs(body []byte) [][]byte {
	var ids [][]byte
	for o := range objects(parseObject(body)["content"]) {
		if id := nonEmpty(o["tool_use_id"]); o.text("type") == "tool_result" && id != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// withCallIDs returns a message with ids for those of its calls that have none.
func withCallIDs(s *slot, ids [][]byte) []byte {
	o := parseObject(s.body)
	blocks := parseArray(o["content"])
	made := false
	for i, raw := range blocks {
		call := parseObject(raw)
		if call.text("type") != "tool_use" || nonEmpty(call["id"]) != nil {
			continue
		}
		id := quote(fmt.Sprintf("call-%d-%d", s.line, i+1))
		if len(ids) > 0 {
			id, ids = ids[0], ids[1:]
		}
		blocks[i] = toolUse(id, call["name"], call["input"])
		made = true
	}
	if !made {
		return s.body
	}
	return message(o.text("role"), list(blocks))
}
