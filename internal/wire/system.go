package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// AppendSystem appends the leading system messages as the value of the member that their provider takes them in.
// Anthropic's system: the content of a single message as it stands, else one array of all their text blocks. Gemini's
// systemInstruction: a content of all their parts. No bodies append nothing.
func AppendSystem(f session.Format, dst []byte, bodies [][]byte) []byte {
	switch {
	case len(bodies) == 0:
		return dst
	case f == session.Gemini:
		return append(appendSystemParts(append(dst, `{"parts":`...), bodies), '}')
	case len(bodies) == 1:
		if content := valueOf(bodies[0], "content"); content != nil {
			return append(dst, content...)
		}
	}
	dst = append(dst, '[')
	first := len(dst)
	for _, body := range bodies {
		dst = appendSystemBlocks(dst, first, valueOf(body, "content"))
	}
	return append(dst, ']')
}

// appendSystemParts appends an array of all parts of the contents.
func appendSystemParts(dst []byte, bodies [][]byte) []byte {
	dst = append(dst, '[')
	first := len(dst)
	for _, body := range bodies {
		parts := valueOf(body, "parts")
		if len(parts) == 0 || parts[0] != '[' {
			continue
		}
		for part := range rawjson.Elements(parts, 0) {
			dst = append(separate(dst, first), part.Of(parts)...)
		}
	}
	return append(dst, ']')
}

// appendSystemBlocks appends the blocks of content to the array whose elements begin at first. Empty text makes no
// block, because the provider refuses it.
func appendSystemBlocks(dst []byte, first int, content []byte) []byte {
	switch {
	case len(content) == 0 || string(content) == `""`:
		return dst
	case content[0] == '"':
		return wrap(separate(dst, first), `{"type":"text","text":`, content, "}")
	case content[0] != '[':
		return append(separate(dst, first), content...)
	}
	for block := range rawjson.Elements(content, 0) {
		if string(valueOf(block.Of(content), "text")) != `""` {
			dst = append(separate(dst, first), block.Of(content)...)
		}
	}
	return dst
}
