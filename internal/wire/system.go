package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// AppendSystem appends the leading system messages as the value of the member that their provider takes them in.
// Anthropic's system: the content of a single message as it stands, else one array of all their text blocks. Gemini's
// systemInstruction: a content of all their parts. No bodies append nothing.
func AppendSystem(f session.Format, dst []byte, bodies [][]byte) []byte {
	switch len(bodies) {
	case 0:
		return dst
	case 1:
		if content := systemContent(bodies[0]); content != nil && f != session.Gemini {
			return append(dst, content...)
		}
	}
	if f == session.Gemini {
		dst = append(dst, `{"parts":`...)
	}
	dst = append(dst, '[')
	first := len(dst)
	for _, body := range bodies {
		if f == session.Gemini {
			dst = appendParts(dst, first, body)
			continue
		}
		dst = appendBlocks(dst, first, systemContent(body))
	}
	if dst = append(dst, ']'); f == session.Gemini {
		dst = append(dst, '}')
	}
	return dst
}

// appendParts appends the parts of a content.
func appendParts(dst []byte, first int, body []byte) []byte {
	at := member(body, "parts")
	if at == (Span{}) || body[at.Start] != '[' {
		return dst
	}
	for part := range rawjson.Elements(body, at.Start) {
		dst = append(separate(dst, first), part.Of(body)...)
	}
	return dst
}

// systemContent returns the content of a message, nil if it is missing or null.
func systemContent(body []byte) []byte {
	s := scanner{body: body}
	var v [anthropicMembers]Span
	s.lookUp(rawjson.Start(body), anthropicNames, v[:])
	return s.value(v[anthropicContent])
}

// appendBlocks appends the blocks of content to the array whose elements begin at first. Empty text makes no block,
// because the provider refuses it.
func appendBlocks(dst []byte, first int, content []byte) []byte {
	if len(content) == 0 || string(content) == `""` {
		return dst
	}
	if content[0] == '"' {
		return wrap(separate(dst, first), `{"type":"text","text":`, content, "}")
	}
	if content[0] != '[' {
		return append(separate(dst, first), content...)
	}
	for block := range rawjson.Elements(content, 0) {
		if !emptyText(content, block.Start) {
			dst = append(separate(dst, first), block.Of(content)...)
		}
	}
	return dst
}

// emptyText reports whether the block at start has the text "".
func emptyText(content []byte, start int) (empty bool) {
	if content[start] != '{' {
		return false
	}
	for key, value := range rawjson.Members(content, start) {
		if rawjson.KeyIs(content, key, "text") {
			empty = string(value.Of(content)) == `""`
		}
	}
	return empty
}
