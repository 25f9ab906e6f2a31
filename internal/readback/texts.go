package readback

import (
	"bytes"
	"encoding/json"
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
		text := strings.ReplaceAll(strings.ToValidUTF8(unquoted(p.text), "\uFFFD"), "\x00", " ")
		texts[i] = Text{Ref: p.ref, Kind: p.kind.String(), Tool: p.tool, Text: text}
	}
	return texts, err
}

// unquoted returns a text; one that is shown as the JSON literal that it was, because it has half of a surrogate pair,
// with U+FFFD in the place of that.
func unquoted(text []byte) (whole string) {
	if bytes.HasPrefix(text, []byte{'"'}) && json.Unmarshal(text, &whole) == nil {
		return whole
	}
	return string(text)
}
