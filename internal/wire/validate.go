package wire

import (
	"fmt"

	"github.com/varve-dev/varve/internal/session"
)

// Violation is one way in which a list of messages breaks its provider's rules (V-C1, V-A3, …).
type Violation struct {
	Rule    string
	Message int // index into the list
	Detail  string
}

// Validate reports how a list of messages breaks its provider's rules. Leading system messages are allowed in every
// format, and so are open calls at the very end, whose results are still to come. A message that Inspect refuses is a
// violation of the rule "inspect".
func Validate(f session.Format, bodies [][]byte) []Violation {
	messages := make([]Message, len(bodies))
	for i, body := range bodies {
		var err error
		if messages[i], err = Inspect(f, body); err != nil {
			return []Violation{{Rule: "inspect", Message: i, Detail: err.Error()}}
		}
	}
	return ValidateMessages(f, messages)
}

// ValidateMessages is Validate for messages that have been inspected already. What callers appended is kept even if it
// breaks a rule; whoever changes a view must not add violations to those of the messages it started from.
func ValidateMessages(f session.Format, messages []Message) []Violation {
	v := validator{messages: messages}
	if f == session.Anthropic {
		v.anthropic()
	} else {
		v.openAIChat()
	}
	return v.found
}

// validator walks messages and keeps the calls that are not answered yet.
type validator struct {
	messages []Message
	open     []openCall
	found    []Violation
}

type openCall struct {
	id      string
	message int
}

func (v *validator) report(rule string, message int, format string, args ...any) {
	v.found = append(v.found, Violation{Rule: rule, Message: message, Detail: fmt.Sprintf(format, args...)})
}

// call opens every call of message i.
func (v *validator) call(i int) {
	for _, p := range v.messages[i].Parts {
		if p.Kind == Call {
			v.open = append(v.open, openCall{p.CallID, i})
		}
	}
}

// answer closes the nearest open call of that id: ids repeat inside a conversation.
func (v *validator) answer(id string) bool {
	for i := len(v.open) - 1; i >= 0; i-- {
		if v.open[i].id == id {
			v.open = append(v.open[:i], v.open[i+1:]...)
			return true
		}
	}
	return false
}

// abandon reports the calls that can be answered no more.
func (v *validator) abandon(rule string) {
	for _, c := range v.open {
		v.report(rule, c.message, "call %q has no result directly after it", c.id)
	}
	v.open = v.open[:0]
}
