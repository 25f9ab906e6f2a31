package wire

import (
	"bytes"
	"fmt"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Steps divides a UIMessage of the assistant by its steps. The AI SDK makes the same messages for a model from the
// resulting UIMessages. The first has the id and all other members; the ids of the others end in the number of their
// step. Steps returns nil for a message that stays whole: of another format or role, with one step only, older than
// version 5, with repeated keys, or with a call that has no result yet.
func Steps(f session.Format, body []byte) [][]byte {
	if f != session.AISDK || bytes.Count(body, []byte(stepStart)) < 2 {
		return nil
	}
	found, err := Inspect(f, body)
	if err != nil || found.Role != "assistant" || found.Flags&FlagDuplicateKeys != 0 || !settled(found.Parts) {
		return nil
	}
	list := member(body, "parts")
	earlier := valueOf(body, "content") != nil || valueOf(body, "toolInvocations") != nil
	if earlier || list == (Span{}) || body[list.Start] != '[' {
		return nil
	}
	steps := stepSpans(body, list)
	if len(steps) < 2 {
		return nil
	}
	bodies := make([][]byte, len(steps))
	bodies[0] = append(append([]byte{}, body[:steps[0].End]...), body[list.End-1:]...)
	for i, step := range steps[1:] {
		bodies[i+1] = laterStep(valueOf(body, "id"), i+2, step.Of(body))
	}
	return bodies
}

// settled reports whether every call of a UIMessage has its result, which is the part after it.
func settled(parts []Part) bool {
	for i := range parts {
		if parts[i].Kind == Call && (i+1 == len(parts) || parts[i+1].Kind != Result) {
			return false
		}
	}
	return true
}

// stepSpans returns the elements of each step, from the first to the last. A step that would have nothing but its start
// belongs to the next one, or at the end to the one before.
func stepSpans(body []byte, list Span) (steps []Span) {
	filled := false // the newest step has more than its start
	for part := range rawjson.Elements(body, list.Start) {
		starts := isType(part.Of(body), stepStart)
		if len(steps) == 0 || starts && filled {
			steps, filled = append(steps, part), false
		}
		filled = filled || !starts
		steps[len(steps)-1].End = part.End
	}
	if n := len(steps); n > 1 && !filled {
		steps[n-2].End = steps[n-1].End
		steps = steps[:n-1]
	}
	return steps
}

// laterStep returns step n of a message. id is the message's, nil if it has none.
func laterStep(id []byte, n int, parts []byte) []byte {
	body := []byte{'{'}
	if len(id) > 0 && id[0] == '"' {
		body = with(body, `"id":`, id[:len(id)-1])
		body = fmt.Appendf(body, `-step-%d",`, n)
	}
	return wrap(body, `"role":"assistant","parts":[`, parts, "]}")
}

// Answers counts the answers of a model that a message of the assistant consists of: the steps of a UIMessage that say
// or call anything, one of any other.
func Answers(f session.Format, body []byte) (steps int) {
	if f != session.AISDK || bytes.Count(body, []byte(stepStart)) < 2 {
		return 1
	}
	for _, n := range Decode(f, body) {
		if n.Role == Assistant && len(n.Blocks) > 0 {
			steps++
		}
	}
	return max(1, steps)
}
