package readback

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// Text is a text of a message: a result, the arguments of a call, or what was said.
type Text struct {
	Ref  string // that reads it
	Kind string
	Tool string
	Text string // as PostgreSQL takes it: UTF-8 without zero bytes
}

// Texts returns the texts of a message.
func Texts(m *session.Message) ([]Text, error) {
	pieces, err := piecesOf(m)
	texts := make([]Text, len(pieces))
	for i, p := range pieces {
		text := strings.ReplaceAll(strings.ToValidUTF8(string(p.text), "\uFFFD"), "\x00", " ")
		texts[i] = Text{Ref: p.ref, Kind: p.kind.String(), Tool: p.tool, Text: text}
	}
	return texts, err
}
