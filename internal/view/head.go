package view

import (
	"encoding/json"
	"strconv"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// AppendHead appends the JSON of a view of a session (protocol.View) up to its first message.
func AppendHead(dst []byte, session string, v *postgres.View, notes Notes) []byte {
	dst = append(dst, `{"session":`...)
	dst = rawjson.Quote(dst, []byte(session))
	dst = append(dst, `,"format":`...)
	if v.Format == "" {
		dst = append(dst, "null"...)
	} else {
		dst = rawjson.Quote(dst, []byte(v.Format))
	}
	dst = append(dst, `,"checkpoint":`...)
	dst = strconv.AppendInt(dst, int64(v.Checkpoint), 10)
	dst = append(dst, `,"through_seq":`...)
	dst = strconv.AppendInt(dst, v.Through, 10)
	dst = append(dst, `,"last_seq":`...)
	dst = strconv.AppendInt(dst, v.LastSeq, 10)
	dst = append(dst, `,"tokens":`...)
	dst = strconv.AppendInt(dst, v.Tokens, 10)
	dst = append(dst, `,"window_tokens":`...)
	dst = strconv.AppendInt(dst, v.Window, 10)
	dst = append(dst, `,"over_window":`...)
	dst = strconv.AppendBool(dst, v.Tokens > v.Room)
	if len(notes.Omitted.Refs) > 0 {
		dst = AppendMember(dst, "omitted", notes.Omitted)
	}
	if len(notes.Cut) > 0 {
		dst = AppendMember(dst, "cut", notes.Cut)
	}
	if notes.Degraded {
		dst = append(dst, `,"degraded":true`...)
	}
	if len(notes.Repairs) > 0 {
		dst = AppendMember(dst, "repairs", notes.Repairs)
	}
	if len(notes.ToolNames) > 0 {
		dst = AppendMember(dst, "tool_names", notes.ToolNames)
	}
	dst = appendSystem(dst, v)
	return append(dst, `,"messages":[`...)
}

// AppendMember appends a member of a JSON object that has others before it.
func AppendMember(dst []byte, name string, value any) []byte {
	text, _ := json.Marshal(value)
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return append(dst, text...)
}

func appendSystem(dst []byte, v *postgres.View) []byte {
	if len(v.System) == 0 {
		return dst
	}
	system := wire.AppendSystem(v.Format, nil, elements(inArray(v.System)))
	if string(system) == "[]" {
		return dst
	}
	dst = append(dst, `,"system":`...)
	return append(dst, system...)
}
