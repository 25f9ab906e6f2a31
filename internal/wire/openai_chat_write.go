package wire

import (
	"bytes"
	"context"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
)

func encodeChat(ctx context.Context, e *encoder, run []Message) error {
	w := chatWriter{encoder: e}
	for i := range run {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := &run[i]
		if n.Role == Tool && untouched(e.target, run[i:i+1]) == 1 {
			w.add(n.Raw)
			continue
		}
		said := w.results(n)
		if n.Role == Tool && len(said) == 0 {
			continue
		}
		w.flush()
		w.message(n, said)
	}
	w.flush()
	return nil
}

// chatWriter writes messages. Nothing may come between the results of a turn: their images and files follow them.
type chatWriter struct {
	*encoder
	shown []Block // images and files of results, each after a text that names its call
}

// results writes the results of a message, and returns its other blocks.
func (w *chatWriter) results(n *Message) (said []*Block) {
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Result {
			w.result(n, p)
		} else {
			said = append(said, p)
		}
	}
	return said
}

// flush writes the message of the user that shows the images and files of results.
func (w *chatWriter) flush() {
	if len(w.shown) == 0 {
		return
	}
	if w.server != nil && w.server.AnswersTools {
		w.add([]byte(`{"role":"assistant","content":"` + bridgeText + `"}`))
	}
	dst := []byte(`{"role":"user","content":[`)
	first := len(dst)
	for i := range w.shown {
		dst = w.block(separate(dst, first), &w.shown[i], User)
	}
	w.add(append(dst, "]}"...))
	w.shown = nil
}

func (w *chatWriter) message(n *Message, said []*Block) {
	dst := append(make([]byte, 0, sizeOf(said)+len(n.Extra)+64), `{"role":`...)
	dst = append(dst, w.roleOf(n)...)
	if n.Name != nil && n.Role != Other && n.Role != Tool {
		dst = with(dst, `,"name":`, n.Name)
	}
	switch {
	case n.Role == Assistant:
		dst = w.assistant(dst, n, said)
	case len(said) > 0 || !n.declares():
		dst = w.content(dst, said, n.Role)
	}
	w.add(append(w.extra(dst, n), '}'))
}

// callWords are the members of a tool call that the intermediate representation has fields for, those of function_call
// among them.
var callWords = []string{"id", "type", "function", "custom", "name", "arguments"}

// assistant appends the members of a message of the assistant. The provider requires content unless there are calls.
func (w *chatWriter) assistant(dst []byte, n *Message, said []*Block) []byte {
	var content, calls []*Block
	var thoughts [][]byte
	var refusal *Block
	for _, p := range said {
		switch {
		case p.Kind == Reasoning && w.isInList(p):
		case p.Kind == Reasoning && w.isInContent(p):
			content = append(content, p)
		case p.Kind == Reasoning:
			thoughts = append(thoughts, p.Text)
		case p.Kind == Call:
			calls = append(calls, p)
		case p.Refusal && refusal == nil && !w.own(p):
			refusal = p
		default:
			content = append(content, p)
		}
	}
	if len(content) == 0 && (len(calls) > 0 || refusal != nil || hasSound(n)) {
		dst = append(dst, `,"content":null`...)
	} else {
		dst = w.content(dst, content, Assistant)
	}
	if refusal != nil {
		dst = with(dst, `,"refusal":`, refusal.Text)
	}
	if len(thoughts) > 0 {
		dst = with(dst, `,"`+w.thoughtMember(n)+`":`, joinLines(thoughts))
	}
	return w.calls(dst, n, calls)
}

func (w *chatWriter) content(dst []byte, said []*Block, role Role) []byte {
	if w.server != nil && len(said) > 0 && slices.Contains(w.server.Texts, role.plain()) {
		texts := make([][]byte, len(said))
		for i, p := range said {
			texts[i] = substitute(p)
		}
		return with(dst, `,"content":`, joinLines(texts))
	}
	return w.openAIContent(append(dst, `,"content":`...), said, role, w.block)
}

// block appends a block of a content array. Only the user may show images and files.
func (w *chatWriter) block(dst []byte, p *Block, role Role) []byte {
	switch {
	case w.own(p) && p.Raw[0] == '{' && p.Kind != Call:
		return append(dst, p.Raw...)
	case p.Kind == Text && p.Refusal && role == Assistant:
		return wrap(dst, `{"type":"refusal","refusal":`, p.Text, "}")
	case role == User && chatShows(p):
		return appendChatMedia(dst, p)
	}
	return wrap(dst, `{"type":"text","text":`, substitute(p), "}")
}

func (w *chatWriter) calls(dst []byte, n *Message, calls []*Block) []byte {
	switch {
	case len(calls) == 0:
		return dst
	case len(calls) == 1 && w.own(calls[0]) && n.isLegacy(calls[0]):
		w.wrote(calls[0])
		return with(dst, `,"function_call":`, calls[0].Raw)
	}
	dst = append(dst, `,"tool_calls":[`...)
	first := len(dst)
	for _, p := range calls {
		w.wrote(p)
		dst = separate(dst, first)
		if w.own(p) && !n.isLegacy(p) {
			dst = append(dst, p.Raw...)
		} else {
			dst = w.call(dst, p)
		}
	}
	return append(dst, ']')
}

func (w *chatWriter) call(dst []byte, p *Block) []byte {
	dst = rawjson.Quote(append(dst, `{"id":`...), []byte(p.CallID))
	kind := `,"type":"function","function":{`
	if p.Custom {
		kind = `,"type":"custom","custom":{`
	}
	dst = append(appendTool(append(dst, kind...), p), '}')
	switch {
	case p.Format == w.target && p.Raw != nil:
		dst = appendMembers(dst, p.Raw, false, callWords)
	case isSigned(p.Signature) && (w.server == nil || w.server.SignsCalls):
		dst = with(dst, `,"extra_content":`, googleContent(p))
	}
	return append(dst, '}')
}

func (w *chatWriter) result(n *Message, p *Block) {
	w.wrote(p)
	content := w.resultContent(p)
	dst := make([]byte, 0, sizeOf(content)+len(n.Extra)+128)
	own := p.Format == w.target
	if own && !p.Edited && n.isLegacy(p) {
		name := p.Name
		if name == nil {
			name = []byte(`""`)
		}
		dst = with(dst, `{"role":"function","name":`, name)
	} else {
		dst = rawjson.Quote(append(dst, `{"role":"tool","tool_call_id":`...), []byte(p.CallID))
		if own && p.Name != nil {
			dst = with(dst, `,"name":`, p.Name)
		}
	}
	dst = w.content(dst, content, Tool)
	w.add(append(w.extra(dst, n), '}'))
}

// resultContent returns the texts of a result. Its images and files come after the results, and are named here.
func (w *chatWriter) resultContent(p *Block) []*Block {
	content := make([]*Block, 0, len(p.Content))
	for i := range p.Content {
		c := &p.Content[i]
		switch {
		case c.Kind == Text:
		case chatShows(c):
			about := note("%s of the result of call %s", c.Kind, shownID(p.CallID))
			w.shown = append(w.shown, Block{Kind: Text, Text: about}, *c)
			c = &Block{Kind: Text, Text: note("%s: it stands behind the results", c.Kind)}
		default:
			c = &Block{Kind: Text, Text: substitute(c)}
		}
		content = append(content, c)
	}
	if p.IsError {
		return failed(content)
	}
	return content
}

// chatShows reports whether a message of the user can show an image or a file.
func chatShows(p *Block) bool {
	m := &p.Media
	switch p.Kind {
	case Image:
		return m.Data != nil || m.URL != nil
	case File:
		return m.Data != nil && (!bytes.HasPrefix(m.Type, []byte(`"audio/`)) || soundFormats[string(m.Type)] != "") ||
			m.ID != nil && fromOpenAI(p.Format)
	}
	return false
}

func appendChatMedia(dst []byte, p *Block) []byte {
	m := &p.Media
	dst = appendImageName(dst, "text", p)
	if format := soundFormats[string(m.Type)]; p.Kind == File && m.Data != nil && format != "" {
		dst = with(dst, `{"type":"input_audio","input_audio":{"data":`, m.Data)
		return wrap(dst, `,"format":"`, format, `"}}`)
	}
	if p.Kind == Image {
		dst = appendURL(append(dst, `{"type":"image_url","image_url":{"url":`...), p)
		if m.Detail != nil && string(m.Detail) != `"original"` { // which only Responses knows
			dst = with(dst, `,"detail":`, m.Detail)
		}
		return append(dst, "}}"...)
	}
	dst = with(dst, `{"type":"file","file":{"filename":`, fileName(m))
	if m.Data == nil {
		return wrap(dst, `,"file_id":`, m.ID, "}}")
	}
	return append(appendURL(append(dst, `,"file_data":`...), p), "}}"...)
}

// soundFormats are the names that OpenAI has for the media types of the sounds that it takes.
var soundFormats = map[string]string{
	`"audio/wav"`: "wav", `"audio/x-wav"`: "wav", `"audio/mpeg"`: "mp3", `"audio/mp3"`: "mp3",
}
