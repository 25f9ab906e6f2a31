package planted

import (
	"fmt"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// divided returns the messages of a session in steps of about equal tokens: a step ends when it has its share of those
// that were left at its beginning. It begins with a message that answers no call.
func divided(s *replay.Session) ([][]summary.Message, error) {
	parts := make([][]summary.Message, steps)
	left, step := s.Tokens(), 0
	share, has := left/steps, int64(0)
	for i := range s.Messages {
		m, err := read(s, i)
		if err != nil {
			return nil, err
		}
		if has >= share && step < steps-1 && !answers(m) {
			step++
			left, has = left-has, 0
			share = left / int64(steps-step)
		}
		parts[step] = append(parts[step], m)
		has += int64(s.Messages[i].Tokens)
	}
	return parts, nil
}

// answers reports whether a message has a result.
func answers(m summary.Message) bool {
	for _, p := range m.Parts {
		if p.Kind == summary.Result {
			return true
		}
	}
	return false
}

var partKinds = map[wire.Kind]summary.PartKind{
	wire.Text: summary.Text, wire.Call: summary.Call, wire.Result: summary.Result, wire.Reasoning: summary.Reasoning,
}

// read decodes message i.
func read(s *replay.Session, i int) (m summary.Message, err error) {
	at := &s.Messages[i]
	found, err := wire.Inspect(s.Format, at.Body)
	if err != nil {
		return m, fmt.Errorf("%s: message %d: %w", s.Name, at.Seq, err)
	}
	return decoded(s.Format, at.Seq, at.Body, &found), nil
}

// decoded returns what was found in a message.
func decoded(format session.Format, seq int64, body []byte, found *wire.Facts) summary.Message {
	m := summary.Message{Seq: seq, Role: found.Role}
	for _, p := range found.Parts {
		part := summary.Part{Kind: partKinds[p.Kind], Tool: p.Name, CallID: p.CallID, Failed: p.IsError}
		value := p.Value.Of(body)
		switch {
		case p.Kind == wire.Result:
			part.Text = string(wire.ResultText(format, body, p).Text)
		case len(value) > 0 && value[0] == '"':
			text, _ := rawjson.Unquote(nil, value)
			part.Text = string(text)
		default:
			part.Text = string(value)
		}
		m.Parts = append(m.Parts, part)
	}
	return m
}
