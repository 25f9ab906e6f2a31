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
	v := validator{messages: messages, byID: map[string][]int{}}
	if f == session.Anthropic {
		v.anthropic()
	} else {
		v.openAIChat()
	}
	return v.found
}

// validator walks messages and keeps the calls that may still be answered.
type validator struct {
	messages []Message
	calls    []openCall
	byID     map[string][]int // the calls without an answer, by id, as indexes of calls, the newest last
	found    []Violation
}

type openCall struct {
	id       string
	message  int
	answered bool
}

func (v *validator) report(rule string, message int, format string, args ...any) {
	v.found = append(v.found, Violation{Rule: rule, Message: message, Detail: fmt.Sprintf(format, args...)})
}

// call opens every call of message i.
func (v *validator) call(i int) {
	for _, p := range v.messages[i].Parts {
		if p.Kind == Call {
			v.byID[p.CallID] = append(v.byID[p.CallID], len(v.calls))
			v.calls = append(v.calls, openCall{id: p.CallID, message: i})
		}
	}
}

// answer closes the nearest open call of that id: ids repeat inside a conversation.
func (v *validator) answer(id string) bool {
	open := v.byID[id]
	if len(open) == 0 {
		return false
	}
	v.calls[open[len(open)-1]].answered = true
	v.byID[id] = open[:len(open)-1]
	return true
}

// abandon reports the calls that can be answered no more.
func (v *validator) abandon(rule string) {
	for _, c := range v.calls {
		if !c.answered {
			v.report(rule, c.message, "call %q has no result directly after it", c.id)
		}
	}
	v.calls = v.calls[:0]
	clear(v.byID)
}
