// Package ingest reads what enters sessions: settings and batches of messages. It reports every problem of a body at
// once, and decides in one place whether a message can be stored.
//
// Start at Message, then Batch (messages of a request) and Settings (a session's). It knows HTTP only as a stream to
// read from. It owns no tables: internal/postgres stores what it returns.
package ingest

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// Message reads a message of a format, and the columns that are stored beside it. Its error is an *InvalidError whose
// pointers are relative to the message.
func Message(format session.Format, body []byte) (m session.NewMessage, err error) {
	found, err := wire.Accept(format, body)
	if err != nil {
		return m, err
	}
	m.Body = body
	extractColumns(&m, format, &found)
	return m, nil
}

// extractColumns fills the columns that are read without the message's body, which is set.
func extractColumns(m *session.NewMessage, format session.Format, found *wire.Facts) {
	m.Role = found.Role
	m.Tokens = found.Tokens
	m.StartsUnit = found.StartsUnit
	m.Flags = int32(found.Flags)
	m.Pinned = found.Flags&wire.FlagPinned != 0
	if format == session.OpenAIResponses {
		m.ItemID = wire.ItemID(m.Body)
	}
	for _, part := range found.Parts {
		switch part.Kind {
		case wire.Call:
			m.Calls = append(m.Calls, part.CallID)
		case wire.Result:
			m.Answers = append(m.Answers, part.CallID)
		}
	}
}

func isNone(span rawjson.Span) bool { return span == rawjson.Span{} }
