package compact

import (
	"github.com/varve-dev/varve/internal/compact/memory"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// history has a session's messages with their tool results and large calls, as far as the stages need them: those of
// the base from its state, those of the tail from their bytes. Its slices are indexed by message and by part.
type history struct {
	in         Input
	provider   *provider.Facts
	count      counter
	messages   []message
	parts      []part
	open       units.Pairer[call] // the calls without a result
	units      units.Tracker
	compaction int                 // the message with the newest compaction by the provider itself, -1 for none
	entered    []int64             // by stage: the message at which the base's history first needed it, 0 for none
	tail       []wire.Facts        // of the tail, where a summary may need them
	facts      map[int]*wire.Facts // of other messages that were read again
	reader     *wire.Reader        // that reads them
	based      int                 // how many of the messages are in the base
	memory     *memory.Memory
	marked     []Pin   // what the texts of the messages have pinned
	pending    pending // the summary that the view waits for, zero for none
	awaited    pending // that of the base
}

type message struct {
	seq         int64
	offset      int // in the base's body
	size        int
	tokens      int // originally
	now         int // of what the view has of it
	role        role
	begins      bool // a unit began with it when it came
	whole       bool // base only: a unit begins with it, even after late answers have joined others
	continues   bool // it is of the same message of the log as the one before it
	unit        int  // how many units had begun with it
	calls       int  // tail only: how many calls it makes
	first, last int  // its parts are parts[first:last]
	coverage
}

// coverage is the range of messages that a summary or a notice replaces. It is zero for a message of the log.
type coverage struct {
	from     int64     // the first of them
	to       int64     // the last of them
	messages int       // their number
	inner    span      // where the summaries are in the decoded text, empty for a notice
	segments []segment // the summaries, oldest first
	pinned   []string  // the keys of the pins that it carries
	largest  []named   // the largest results among them, by their place in the log
}

// named is an evicted result as a summary or a notice names it.
type named struct {
	ref    string
	tool   string
	tokens int
}

// span is a half-open range.
type span struct{ start, end int }

func (c *coverage) coversOthers() bool { return c.from > 0 }

// cover adds a message, or those that it covers.
func (c *coverage) cover(m *message) {
	first, messages := m.seq, 1
	switch {
	case m.coversOthers():
		first, messages = m.from, m.messages
	case m.continues:
		messages = 0
	}
	if c.from == 0 || first < c.from {
		c.from = first
	}
	c.to = max(c.to, m.through())
	c.messages += messages
}

// through returns the last seq that a message of the view accounts for.
func (m *message) through() int64 { return max(m.seq, m.to) }

// role is what decisions need of a message's role.
type role uint8

const (
	other role = iota
	system
	user // its message does not answer calls
	assistant
)

// call is a tool call that waits for its result.
type call struct {
	subject
	id      string
	message int
	unit    int
	index   int // of the part in its message
	part    int // its number among the history's parts, -1 for a call that is too small to be one
}

// kind is the kind of a part.
type kind uint8

const (
	result    kind = iota // a tool's result: its content may be replaced
	arguments             // a call with large arguments: they may be omitted
	prose                 // a very large text of a message: it is cut where nothing else is left, see hard.go
)

// part is a piece of a message that stages may shorten, and how it has been shortened so far.
type part struct {
	subject
	kind        kind
	message     int
	seq         int64     // of the message of the log that has it
	index       int       // of the part in that message
	foreign     bool      // that message has another format, or came before the one that the view has it in
	appended    [32]byte  // the SHA-256 of what it has there, if foreign
	value       wire.Span // of its content or its arguments, in the message
	callID      string
	paired      bool // a result that answers a call, a call that has an answer; no stage touches others
	usable      bool // a result that succeeded and has content, so that it can supersede an older one
	asked       int  // tail only, a result: the message of its call, -1 for an orphan
	askedAt     int  // the part of that message
	call        int  // a result: the number of its call among the parts, -1 if the call is not one
	origin           // of a result that is a copy
	tokens      int  // of the whole
	now         int  // of what the view has of it
	action      ActionKind
	replacement // zero while action is Keep
}

// valueBytes returns how many bytes the part's value has in its message.
func (p *part) valueBytes() int { return p.value.End - p.value.Start }

// replacement is what the state remembers of a part that is no longer whole in the view.
type replacement struct {
	stage     string
	sum       [32]byte
	capped    int // as in the proposal
	collapsed int
	bytes     int // of the whole
	chars     int
	onlyText  bool // the whole was nothing but text
	head      int  // characters of head and tail that were asked for
	tail      int
	headBytes int // before and after the line between them, decoded
	tailBytes int
	preview   string
}

// body returns the bytes of a message as the view has them.
func (h *history) body(m int) []byte {
	if m >= h.based {
		return h.in.Tail[m-h.based].Body
	}
	from := h.messages[m].offset
	return h.in.Base.Body[from : from+h.messages[m].size]
}

// refText returns what brings a part back whose content is known: of a text its message, which the log has.
func (h *history) refText(p *part, content *replacement) string {
	if p.kind == prose {
		return session.MessagesRef{First: p.seq, Last: p.seq}.String()
	}
	return h.ref(p, content).String()
}

// shownRef returns what the view names in place of a part: of a copy the result that it was made of.
func (h *history) shownRef(p *part, content *replacement) string {
	if p.source != "" {
		return p.source
	}
	return h.refText(p, content)
}

// ref returns the ref of a part whose content is known.
func (h *history) ref(p *part, content *replacement) session.ResultRef {
	return session.NewResultRef(p.seq, p.index, content.sum)
}
