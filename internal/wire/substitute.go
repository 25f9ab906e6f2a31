package wire

import (
	"fmt"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// maxShown is the number of bytes that a substitute shows of what a format cannot express. The rest is in the log.
const maxShown = 4096

// substitute returns the text, as a string literal, that replaces a block in a format that cannot express it. The
// text names the kind of the block, and shows it.
func substitute(p *Block) []byte {
	switch p.Kind {
	case Reasoning:
		return joined("[Reasoning] ", p.Text)
	case Image, File:
		return mediaNote(p)
	case Text:
		return p.Text
	}
	switch {
	case p.Format == session.Anthropic && isSummary(p.Raw):
		return joined("[Summary of the conversation so far] ", valueOf(p.Raw, "content"))
	case p.Format == session.OpenAIResponses && isCompactionItem(p.Raw):
		return note("What was said so far was compacted by its provider, which alone can read it: %d bytes", len(p.Raw))
	}
	if tool := foundTool(p.Raw); tool != nil {
		return note("tool %s", unquoted(tool))
	}
	return rawNote(p)
}

func mediaNote(p *Block) []byte {
	m, what := &p.Media, p.Kind.String()
	for _, literal := range [][]byte{m.Name, m.Type} {
		if literal != nil {
			what += " " + string(unquoted(literal))
		}
	}
	switch {
	case m.Text != nil:
		return joined("["+what+"]\n", m.Text)
	case m.URL != nil:
		return joined("["+what+"] ", m.URL)
	case m.ID != nil:
		return joined("["+what+"] ", m.ID)
	}
	return note("%s: %d bytes in base64", what, max(0, len(m.Data)-2))
}

func rawNote(p *Block) []byte {
	shown := p.Raw
	if len(shown) > maxShown {
		return note("%s of %d bytes, it begins: %s", p.Kind, len(shown), cutText(shown))
	}
	return note("%s: %s", p.Kind, shown)
}

// cutText returns the beginning of a text, cut between characters.
func cutText(text []byte) []byte {
	end := maxShown
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end]
}

// note returns a text in brackets, as a string literal.
func note(format string, args ...any) []byte {
	return rawjson.Quote(nil, fmt.Appendf(nil, "["+format+"]", args...))
}

// joined puts a text in front of a string literal.
func joined(before string, literal []byte) []byte {
	out := rawjson.Quote(nil, []byte(before))
	return append(out[:len(out)-1], literal[1:]...)
}

// joinLines returns one literal of several, a line each.
func joinLines(literals [][]byte) []byte {
	if len(literals) == 1 {
		return literals[0]
	}
	out := []byte{'"'}
	for i, literal := range literals {
		if i > 0 {
			out = append(out, '\\', 'n')
		}
		out = append(out, literal[1:len(literal)-1]...)
	}
	return append(out, '"')
}
