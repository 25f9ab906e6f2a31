package importer

// chatSlots is a conversation of Chat Completions messages of which some come in pieces: each stands where its first
// piece was, with results of its calls behind it, wherever the other pieces are.
type chatSlots struct {
	slots []*chatSlot
	byID  map[string]*chatSlot // of messages in pieces
}

// chatSlot is the place of a message.
type chatSlot struct {
	line    int
	body    []byte      // of a message that is whole
	message chatMessage // of one in pieces
}

func newChatSlots() chatSlots { return chatSlots{byID: map[string]*chatSlot{}} }

// add appends a whole message.
func (c *chatSlots) add(line int, body []byte) {
	c.slots = append(c.slots, &chatSlot{line: line, body: body})
}

// open returns the assistant's message of that id; it makes one that begins on the line if there is none yet.
func (c *chatSlots) open(id string, line int) *chatMessage {
	slot := c.byID[id]
	if slot == nil {
		slot = &chatSlot{line: line, message: chatMessage{role: "assistant"}}
		c.byID[id] = slot
		c.slots = append(c.slots, slot)
	}
	return &slot.message
}

// messages returns all but the messages in pieces that are empty.
func (c *chatSlots) messages() []Message {
	var messages []Message
	for _, slot := range c.slots {
		body, ok := slot.body, true
		if body == nil {
			body, ok = slot.message.body()
		}
		if ok {
			messages = append(messages, Message{Body: body, Line: slot.line})
		}
	}
	return messages
}
