package units

// Message is what Tracker needs about a message.
type Message struct {
	Assistant  bool // it is the assistant's (role assistant or model)
	StartsUnit bool // it contains more than results of calls
	Continues  bool // it was converted from the same message of another format as the one before it
}

// Tracker finds the units of a conversation. A unit is an assistant message with all its calls and all their results,
// or a single message of another role.
//
// A unit begins with the first message, with a message of the assistant, and with any other message that contains more
// than results. While calls of the newest assistant message wait for results, its unit is open and the messages that
// come belong to it. A checkpoint never ends inside an open unit. The next assistant message closes it and abandons
// calls without a result. A result that comes later still joins the units from its call to itself: see Join.
//
// The zero Tracker is ready. Call Add for each message, then Called and Answered for its calls and results.
type Tracker struct {
	// Items is set for OpenAI's Responses: consecutive items of the assistant are one message.
	Items bool

	unit      int  // the newest unit
	asked     int  // the unit of the newest assistant message, 0 for none
	waiting   int  // its calls without a result
	assistant bool // the last message is the assistant's
}

// Add adds the next message and reports whether a unit begins with it.
func (t *Tracker) Add(m Message) bool {
	begins := t.begins(m)
	if begins {
		t.unit++
	}
	if m.Assistant && t.asked != t.unit {
		t.asked, t.waiting = t.unit, 0
	}
	t.assistant = m.Assistant
	return begins
}

func (t *Tracker) begins(m Message) bool {
	switch {
	case t.unit == 0:
		return true
	case m.Continues:
		return false
	case m.Assistant:
		return !t.Items || !t.assistant
	}
	return m.StartsUnit && t.waiting == 0
}

// Unit returns the number of the unit of the last message, counted from 1 in order of beginning.
func (t *Tracker) Unit() int { return t.unit }

// Called records a call in a unit.
func (t *Tracker) Called(unit int) {
	if unit == t.asked {
		t.waiting++
	}
}

// Answered records a result of a call in a unit.
func (t *Tracker) Answered(unit int) {
	if unit == t.asked {
		t.waiting--
	}
}

// Open reports whether calls of the newest assistant message wait for their results.
func (t *Tracker) Open() bool { return t.waiting > 0 }

// Join removes the starts of units after message call, because a result of that call came late. starts has the indexes
// of the messages with which units begin, in ascending order.
func Join(starts []int, call int) []int {
	for len(starts) > 0 && starts[len(starts)-1] > call {
		starts = starts[:len(starts)-1]
	}
	return starts
}
