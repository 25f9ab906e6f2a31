package wire

import (
	"bytes"
	"context"

	"github.com/varve-dev/varve/internal/rawjson"
)

func encodeResponses(ctx context.Context, e *encoder, run []Message) error {
	w := itemWriter{e}
	for i := range run {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.items(&run[i])
	}
	return nil
}

// itemWriter writes items.
type itemWriter struct{ *encoder }

// items writes a Message: one item for each of its calls, results and blocks of reasoning, and one message for the
// texts, images and files between them.
func (w itemWriter) items(n *Message) {
	var said []*Block
	first := len(w.bodies)
	flush := func() {
		if len(said) > 0 {
			w.message(n, said)
			said = nil
		}
	}
	for i := range n.Blocks {
		p := &n.Blocks[i]
		switch {
		case w.isItem(n, p):
			flush()
			w.add(p.Raw)
		case p.Kind == Call && n.Role == Assistant:
			flush()
			w.wrote(p)
			w.call(n, p)
		case p.Kind == Result:
			flush()
			w.wrote(p)
			w.result(n, p)
		default:
			said = append(said, p)
		}
	}
	if flush(); len(w.bodies) == first {
		w.message(n, nil)
	}
}

// isItem reports whether the bytes of a block are an item that can be written unchanged.
func (w itemWriter) isItem(n *Message, p *Block) bool {
	if !w.own(p) {
		return false
	}
	switch p.Kind {
	case Call, Result, Reasoning:
		return true
	case Opaque:
		return n.Format == w.target && n.Raw != nil && !isMessageItem(n.Raw)
	}
	return false
}

func (w itemWriter) message(n *Message, said []*Block) {
	if speaker := w.speaker(n); speaker != nil {
		said = append([]*Block{{Kind: Text, Text: speaker}}, said...)
	}
	dst := append(make([]byte, 0, sizeOf(said)+len(n.Extra)+64), `{"type":"message","role":`...)
	dst = wrap(dst, "", w.roleOf(n), `,"content":`)
	dst = w.openAIContent(dst, said, n.Role, w.block)
	w.add(append(w.extra(dst, n), '}'))
}

// block appends a block. A message of the assistant has texts and refusals; all others, and results, may have images
// and files, too.
func (w itemWriter) block(dst []byte, p *Block, role Role) []byte {
	switch {
	case w.own(p) && isContent(p):
		return append(dst, p.Raw...)
	case role == Assistant && p.Kind == Text && p.Refusal:
		return wrap(dst, `{"type":"refusal","refusal":`, p.Text, "}")
	case role == Assistant:
		return wrap(dst, `{"type":"output_text","text":`, substitute(p), "}")
	case responsesShow(p):
		return appendResponsesMedia(dst, p)
	}
	return wrap(dst, `{"type":"input_text","text":`, substitute(p), "}")
}

// isContent reports whether a block of the API's own may be in a content or output. A screenshot is itself an output.
func isContent(p *Block) bool {
	switch p.Kind {
	case Text, Image, File, Opaque:
		return p.Raw[0] == '{' && !isType(p.Raw, "computer_screenshot")
	}
	return false
}

// itemType returns the type of the item that a call becomes.
func itemType(p *Block) string {
	if p.Custom {
		return customForm
	}
	return functionForm
}

func (w itemWriter) call(n *Message, p *Block) {
	dst := wrap(make([]byte, 0, len(p.Value)+len(n.Extra)+128), `{"type":"`, itemType(p), `","call_id":`)
	dst = append(rawjson.Quote(dst, []byte(p.CallID)), ',')
	w.add(append(w.extra(appendTool(dst, p), n), '}'))
}

func (w itemWriter) result(n *Message, p *Block) {
	content := make([]*Block, len(p.Content))
	for i := range content {
		content[i] = &p.Content[i]
	}
	if p.IsError {
		content = failed(content)
	}
	dst := wrap(make([]byte, 0, sizeOf(content)+len(n.Extra)+128), `{"type":"`, itemType(p), `_output","call_id":`)
	dst = append(rawjson.Quote(dst, []byte(p.CallID)), `,"output":`...)
	dst = w.openAIContent(dst, content, Tool, w.block)
	w.add(append(w.extra(dst, n), '}'))
}

// responsesShow reports whether an image or a file can be shown. There is no block for sounds.
func responsesShow(p *Block) bool {
	m := &p.Media
	known := m.Data != nil || m.URL != nil || m.ID != nil && fromOpenAI(p.Format)
	switch p.Kind {
	case Image:
		return known
	case File:
		return known && !bytes.HasPrefix(m.Type, []byte(`"audio/`))
	}
	return false
}

func appendResponsesMedia(dst []byte, p *Block) []byte {
	m := &p.Media
	byID := m.Data == nil && m.URL == nil
	dst = appendImageName(dst, "input_text", p)
	switch {
	case p.Kind == Image && byID:
		dst = with(dst, `{"type":"input_image","file_id":`, m.ID)
	case p.Kind == Image:
		dst = appendURL(append(dst, `{"type":"input_image","image_url":`...), p)
	case byID:
		dst = with(dst, `{"type":"input_file","file_id":`, m.ID)
	case m.Data == nil:
		dst = with(dst, `{"type":"input_file","file_url":`, m.URL)
	default:
		dst = appendURL(append(dst, `{"type":"input_file","file_data":`...), p)
	}
	switch {
	case p.Kind == Image && m.Detail != nil:
		dst = with(dst, `,"detail":`, m.Detail)
	case p.Kind == File && (m.Name != nil || m.Data != nil):
		dst = with(dst, `,"filename":`, fileName(m))
	}
	return append(dst, '}')
}
