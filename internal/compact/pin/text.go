package pin

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// TextOf returns the text of a part of a message, or of all of them with an empty line between two: texts and results
// decoded, the arguments of calls as they are. It reports false if there is no such part, or no text in it.
func TextOf(f session.Format, body []byte, found *wire.Facts, part int) (text string, ok bool) {
	var all [][]byte
	for i := range found.Parts {
		p := &found.Parts[i]
		if part != session.WholeMessage && p.Index != part {
			continue
		}
		if read := textOf(f, body, p); len(read) > 0 {
			all = append(all, read)
		}
	}
	return string(bytes.Join(all, []byte("\n\n"))), len(all) > 0
}

// textOf returns the text of a part, nil for reasoning and for what is no text.
func textOf(f session.Format, body []byte, p *wire.Part) []byte {
	value := p.Value.Of(body)
	switch {
	case p.Kind == wire.Result:
		return wire.ResultText(f, body, *p).Text
	case p.Kind != wire.Text && p.Kind != wire.Call || len(value) == 0:
		return nil
	case value[0] == '"':
		text, _ := rawjson.Unquote(nil, value)
		return text
	}
	return value
}
