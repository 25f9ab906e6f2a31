package wire

import (
	"bytes"
	"context"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
)

func encodeAnthropic(ctx context.Context, e *encoder, run []Message) error {
	for i := range run {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.add(e.anthropicMessage(&run[i]))
	}
	return nil
}

func (e *encoder) anthropicMessage(n *Message) []byte {
	body := append(make([]byte, 0, anthropicSize(n)), `{"role":`...)
	body = wrap(body, "", e.roleOf(n), `,"content":`)
	body = e.anthropicContent(body, n.Role, e.speaker(n), n.Blocks)
	return append(e.extra(body, n), '}')
}

// anthropicSize returns about how many bytes a message will have.
func anthropicSize(n *Message) int {
	size := 64 + len(n.Extra)
	for i := range n.Blocks {
		p := &n.Blocks[i]
		size += 128 + max(len(p.Raw), len(p.Text)+len(p.Value)+len(p.Media.Data))
	}
	return size
}

// anthropicContent appends the value of content: a string for a single text that came without a block, else blocks.
func (e *encoder) anthropicContent(dst []byte, role Role, speaker []byte, blocks []Block) []byte {
	if len(blocks) == 1 && speaker == nil && blocks[0].Kind == Text && !e.own(&blocks[0]) {
		return append(dst, blocks[0].Text...)
	}
	dst = append(dst, '[')
	first := len(dst)
	if speaker != nil {
		dst = appendTextBlock(dst, first, speaker)
	}
	for i := range blocks {
		dst = e.anthropicBlock(dst, first, role, &blocks[i])
	}
	return append(dst, ']')
}

// appendTextBlock appends a text to the array whose elements begin at first, unless it is nothing but white space,
// which the API refuses in a message, and may refuse in a result.
func appendTextBlock(dst []byte, first int, literal []byte) []byte {
	if blank(literal) {
		return dst
	}
	return wrap(separate(dst, first), `{"type":"text","text":`, literal, "}")
}

func (e *encoder) anthropicBlock(dst []byte, first int, role Role, p *Block) []byte {
	if p.Kind == Call || p.Kind == Result {
		e.wrote(p)
	}
	switch {
	case e.own(p):
		return append(separate(dst, first), p.Raw...)
	case p.Kind == Call:
		return appendToolUse(separate(dst, first), p)
	case p.Kind == Result:
		return e.toolResult(separate(dst, first), p)
	case p.Kind == Reasoning && role == Assistant && e.server != nil && e.server.Unsigned:
		return wrap(separate(dst, first), `{"type":"thinking","thinking":`, p.Text, `,"signature":""}`)
	case role == User || role == Tool || role == Other:
		if media := anthropicMedia(p, p.Format == e.target); media != nil {
			if p.Kind == Image && p.Media.Name != nil {
				dst = appendTextBlock(dst, first, note("image %s", unquoted(p.Media.Name)))
			}
			return append(separate(dst, first), media...)
		}
		if tool := foundTool(p.Raw); tool != nil && role == Tool {
			return wrap(separate(dst, first), `{"type":"tool_reference","tool_name":`, tool, "}")
		}
	}
	return appendTextBlock(dst, first, substitute(p))
}

func appendToolUse(dst []byte, p *Block) []byte {
	dst = rawjson.Quote(append(dst, `{"type":"tool_use","id":`...), []byte(p.CallID))
	dst = with(dst, `,"name":`, toolName(p))
	return append(appendInput(append(dst, `,"input":`...), p.Value), '}')
}

func (e *encoder) toolResult(dst []byte, p *Block) []byte {
	dst = rawjson.Quote(append(dst, `{"type":"tool_result","tool_use_id":`...), []byte(p.CallID))
	if len(p.Content) > 0 {
		dst = e.anthropicContent(append(dst, `,"content":`...), Tool, nil, p.Content)
	}
	if p.IsError {
		dst = append(dst, `,"is_error":true`...)
	}
	return append(dst, '}')
}

// anthropicImages are the types of images that the API takes.
var anthropicImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// anthropicTypes returns the types of images, or of documents, that the API takes in base64.
func anthropicTypes(image bool) []string {
	if image {
		return anthropicImages
	}
	return []string{pdfType}
}

// anthropicMedia returns the block of an image or a file, nil if the API has none for it. own reports whether an id is
// Anthropic's.
func anthropicMedia(p *Block, own bool) []byte {
	m, block := &p.Media, []byte(nil)
	media := string(unquotedName(m.Type))
	source := anthropicSource(m, own)
	switch {
	case source == nil:
	case p.Kind == Image && (m.Data == nil || slices.Contains(anthropicImages, media)):
		block = wrap(nil, `{"type":"image","source":`, source, "}")
	case p.Kind == File && (own || m.Text != nil || media == "application/pdf"):
		block = append([]byte(`{"type":"document","source":`), source...)
		if m.Name != nil {
			block = with(block, `,"title":`, m.Name)
		}
		block = append(block, '}')
	}
	return block
}

func anthropicSource(m *Media, own bool) []byte {
	switch {
	case m.Text != nil:
		return mediaSource("text", `"media_type":"text/plain","data":`, m.Text)
	case m.Data != nil && m.Type != nil:
		return mediaSource("base64", `"media_type":`+string(m.Type)+`,"data":`, m.Data)
	case m.URL != nil && bytes.HasPrefix(m.URL, []byte(`"http`)):
		return mediaSource("url", `"url":`, m.URL)
	case m.ID != nil && own:
		return mediaSource("file", `"file_id":`, m.ID)
	}
	return nil
}

func mediaSource(kind, members string, value []byte) []byte {
	out := make([]byte, 0, len(members)+len(value)+32)
	out = wrap(out, `{"type":"`, kind, `",`)
	return wrap(out, members, value, "}")
}
