package importer

import (
	"errors"

	"github.com/varve-dev/varve/internal/session"
)

// Droid is Factory's Droid sessions: JSON lines.
const Droid Source = "droid"

// A session's messages are Anthropic's.
var droid = source{
	name:   Droid,
	title:  "Droid's sessions",
	detect: func(s sample) bool { return s.object.text("type") == "session_start" && s.object.has("id") },
	read:   readDroid,
}

func readDroid(f *File, id string, data []byte) error {
	f.add(id, session.Anthropic, f.convert(f.entries(data), func(e entry) ([][]byte, error) {
		if kind := e.text("type"); kind != "message" {
			return nil, skipped(kind)
		}
		m := parseObject(e.object["message"])
		switch role := m.text("role"); {
		case role == "":
			return nil, errNoRole
		case !m.has("content"):
			return nil, errors.New("a message without content")
		default:
			return [][]byte{message(role, m["content"])}, nil
		}
	}))
	return nil
}
