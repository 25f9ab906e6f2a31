package readback

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/transcript"
	"github.com/varve-dev/varve/internal/wire"
)

// piece is a text of a message that is searched: a result, a call's arguments, or a text of the message.
type piece struct {
	ref  string // that reads it
	seq  int64
	role string
	part int
	kind wire.Kind
	tool string
	line int64 // of what the ref reads, where the text begins
	text []byte
	json bool // text is not what was stored, but the text in it
}

// piecesOf returns the texts of a message.
func piecesOf(m *session.Message) (list []piece, err error) {
	parts, err := partsOf(m.Format, m, [][]byte{m.Body})
	if err != nil {
		return nil, err
	}
	known := map[wire.Kind]int{}
	for i := range parts {
		r := &parts[i].result
		p := piece{
			ref: r.Ref, seq: m.Seq, role: m.Role, part: r.Part, kind: parts[i].Kind, tool: r.Tool, line: 1,
			text: r.Body,
		}
		if isJSON(r.MediaType) {
			if text, ok := readable(r.Body); ok {
				p.text, p.json = text, true
			}
		}
		known[p.kind]++
		list = append(list, p)
	}
	return append(list, textsOf(m, known)...), nil
}

// textsOf returns the texts of a message that are no known results and arguments, by lines of the message's text: that
// begins with a line feed, which its reader leaves out.
func textsOf(m *session.Message, known map[wire.Kind]int) (list []piece) {
	line := 0
	for i, p := range transcript.Sections(m.Format, m.Body, m.Seq) {
		if known[p.Kind] > 0 && !p.Heading {
			known[p.Kind]--
		} else if !p.Heading {
			list = append(list, piece{
				ref: session.MessagesRef{First: m.Seq, Last: m.Seq}.String(), seq: m.Seq, role: m.Role, part: i,
				kind: p.Kind, line: int64(line), text: []byte(p.Text),
			})
		}
		line += strings.Count(p.Text, "\n")
	}
	return list
}
