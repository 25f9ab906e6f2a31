package importer

import "fmt"

// A line has a role and a message of Anthropic's blocks, whose calls have no id. They get the ids of the results in the
// next message, in their order; a call without a result gets one made of its place.
var cursor = source{
	name:   Cursor,
	title:  "Cursor's transcripts",
	detect: marked("role !type message.content"),
	into:   Anthropic,
	open:   func(*draft) record { return (&cursorLog{}).message },
}

// cursorLog keeps the message before the next one, which may have the results of its calls.
type cursorLog struct{ last *cursorMessage }

type cursorMessage struct {
	role    string
	content []byte
	line    int
	results [][]byte // ids of the calls that the next message answers, as literals
}

func (c *cursorLog) message(d *draft, e entry) error {
	m := &cursorMessage{role: e.text("role"), content: e.at("message.content"), line: e.line}
	switch {
	case m.role == "":
		return errNoRole
	case !isString(m.content) && parseArray(m.content) == nil:
		return errNoContent
	}
	for o := range objects(m.content) {
		if id := nonEmpty(o["tool_use_id"]); o.text("type") == "tool_result" && id != nil && c.last != nil {
			c.last.results = append(c.last.results, id)
		}
	}
	d.place(m.body)
	c.last = m
	return nil
}

// body returns the message with ids for those of its calls that have none.
func (m *cursorMessage) body() []byte {
	blocks, ids := parseArray(m.content), m.results
	made := false
	for i, raw := range blocks {
		call := parseObject(raw)
		if call.text("type") != "tool_use" || nonEmpty(call["id"]) != nil {
			continue
		}
		id := quote(fmt.Sprintf("call-%d-%d", m.line, i+1))
		if len(ids) > 0 {
			id, ids = ids[0], ids[1:]
		}
		blocks[i] = toolUse(id, call["name"], call["input"])
		made = true
	}
	if !made {
		return message(m.role, m.content)
	}
	return message(m.role, list(blocks))
}
