package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
)

func encodeChat(e *encoder, run []Message) {
	w := chatWriter{encoder: e}
	for i := range run {
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
}

// chatWriter writes messages. Nothing may stand between the results of a turn: what they have to show waits behind
// them.
type chatWriter struct {
	*encoder
	shown []Block // images and files of results, each behind a text that says whose they are
}

// results writes the results of a message, and returns what else it says.
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
	dst := []byte(`{"role":"user","content":[`)
	first := len(dst)
	for i := range w.shown {
		dst = w.block(separate(dst, first), &w.shown[i], User)
	}
	w.add(append(dst, "]}"...))
	w.shown = nil
}

func (w *chatWriter) message(n *Message, said []*Block) {
	dst := append(make([]byte, 0, len(n.Raw)+64), `{"role":`...)
	dst = append(dst, w.roleOf(n)...)
	if n.Name != nil && n.Role != Other && n.Role != Tool {
		dst = with(dst, `,"name":`, n.Name)
	}
	if n.Role == Assistant {
		dst = w.assistant(dst, n, said)
	} else {
		dst = w.content(dst, said, n.Role)
	}
	w.add(append(w.extra(dst, n), '}'))
}

// extra appends the members of a message of the target's own format that the model has no words for.
func (e *encoder) extra(dst []byte, n *Message) []byte {
	if n.Format != e.target || len(n.Extra) == 0 {
		return dst
	}
	return with(dst, ",", n.Extra)
}

// roleOf returns the role that a message of OpenAI's formats is sent with, as a string literal.
func (e *encoder) roleOf(n *Message) []byte {
	switch {
	case n.Role == Assistant:
		return []byte(`"assistant"`)
	case n.Role == System && fromOpenAI(n.Format) && string(roleIn(n.Raw)) == `"developer"`:
		return []byte(`"developer"`)
	case n.Role == System:
		return []byte(`"system"`)
	case n.Role == Other && n.Format == e.target && n.Name != nil:
		return n.Name
	}
	return []byte(`"user"`)
}

// callWords are the members of a tool call that the intermediate representation has fields for, those of function_call
// among them.
var callWords = []string{"id", "type", "function", "custom", "name", "arguments"}

// roleIn returns the literal of the role in a message, nil for none.
func roleIn(message []byte) []byte {
	if message == nil {
		return nil
	}
	object := message[rawjson.Start(message):]
	return member(object, "role").Of(object)
}

// assistant appends what the assistant says. The provider wants content unless there are calls.
func (w *chatWriter) assistant(dst []byte, n *Message, said []*Block) []byte {
	var content, calls []*Block
	var thoughts [][]byte
	var refusal *Block
	for _, p := range said {
		switch {
		case p.Kind == Reasoning:
			thoughts = append(thoughts, thought(p))
		case p.Kind == Call:
			calls = append(calls, p)
		case p.Refusal && refusal == nil && !w.own(p):
			refusal = p
		default:
			content = append(content, p)
		}
	}
	if len(content) == 0 && (len(calls) > 0 || refusal != nil) {
		dst = append(dst, `,"content":null`...)
	} else {
		dst = w.content(dst, content, Assistant)
	}
	if refusal != nil {
		dst = with(dst, `,"refusal":`, refusal.Text)
	}
	if len(thoughts) > 0 {
		dst = with(dst, `,"reasoning_content":`, joinLines(thoughts))
	}
	return w.calls(dst, n, calls)
}

// thought returns the text of reasoning.
func thought(p *Block) []byte {
	if p.Text == nil {
		return substitute(p)
	}
	return p.Text
}

// content appends the content: a string if it is one text that had no block of its own.
func (w *chatWriter) content(dst []byte, said []*Block, role Role) []byte {
	dst = append(dst, `,"content":`...)
	switch {
	case len(said) == 0:
		return append(dst, `""`...)
	case len(said) == 1 && said[0].Kind == Text && !w.own(said[0]) && !(said[0].Refusal && role == Assistant):
		return append(dst, said[0].Text...)
	}
	dst = append(dst, '[')
	first := len(dst)
	for _, p := range said {
		dst = w.block(separate(dst, first), p, role)
	}
	return append(dst, ']')
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
		return with(dst, `,"function_call":`, calls[0].Raw)
	}
	dst = append(dst, `,"tool_calls":[`...)
	first := len(dst)
	for _, p := range calls {
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
	if p.Custom {
		dst = with(dst, `,"type":"custom","custom":{"name":`, toolName(p))
		dst = with(dst, `,"input":`, p.Value)
	} else {
		dst = with(dst, `,"type":"function","function":{"name":`, toolName(p))
		dst = appendArguments(append(dst, `,"arguments":`...), p.Value)
	}
	dst = append(dst, '}')
	if p.Format == w.target && p.Raw != nil {
		s := scanner{body: p.Raw}
		if others := s.others(0, callWords); len(others) > 0 {
			dst = with(dst, ",", others)
		}
	}
	return append(dst, '}')
}

// toolName returns the name of the tool of a call, which the provider always wants.
func toolName(p *Block) []byte {
	if p.Name == nil {
		return []byte(`"unknown"`)
	}
	return p.Name
}

// appendArguments appends arguments the way that OpenAI wants them: JSON inside a string.
func appendArguments(dst, value []byte) []byte {
	switch {
	case len(value) == 0:
		return append(dst, `"{}"`...)
	case value[0] == '"':
		return append(dst, value...)
	}
	return rawjson.Quote(dst, value)
}

func (w *chatWriter) result(n *Message, p *Block) {
	dst := make([]byte, 0, len(p.Raw)+len(n.Raw)+64)
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
	dst = w.content(dst, w.resultContent(p), Tool)
	w.add(append(w.extra(dst, n), '}'))
}

// resultContent returns what a result says in text. Images and files are shown behind the results, and named here.
func (w *chatWriter) resultContent(p *Block) []*Block {
	content := make([]*Block, 0, len(p.Content))
	for i := range p.Content {
		c := &p.Content[i]
		switch {
		case c.Kind == Text:
		case chatShows(c):
			about := note("%s of the result of call %s", c.Kind, p.CallID)
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

// failed marks the content of a result as that of a tool that failed, where the format has no member for it.
func failed(content []*Block) []*Block {
	if len(content) == 0 || content[0].Kind != Text {
		return append([]*Block{{Kind: Text, Text: []byte(`"[Error]"`)}}, content...)
	}
	content[0] = &Block{Kind: Text, Text: joined("[Error] ", content[0].Text)}
	return content
}
