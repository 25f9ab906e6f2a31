package wire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// encodeAISDK writes all Messages of a view, those of untouched messages, too: a result that came later, or in another
// format, goes into the message of its call.
func encodeAISDK(ctx context.Context, e *encoder, list []Message) error {
	w := uiWriter{encoder: e}
	for len(list) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := untouched(e.target, list)
		for i := range list[:max(1, n)] {
			w.write(&list[i])
		}
		if n > 0 {
			w.list[len(w.list)-1].untouched = true
		}
		list = list[max(1, n):]
	}
	for i := range w.list {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.emit(&w.list[i])
	}
	return nil
}

// uiWriter collects UIMessages: a result may belong to a call that is not in the last of them.
type uiWriter struct {
	*encoder
	list    []uiMessage
	open    units.Pairer[uiCall]
	results bool              // the last Message was results
	named   []byte            // what the last id was made of
	digest  [sha256.Size]byte // of named
}

type uiMessage struct {
	role      string   // a string literal
	first     *Message // what it begins with
	untouched bool     // it is the whole message that first is a part of
	extra     []byte
	parts     []uiPart
}

// uiPart is a block, with its result if it is a call. One of neither is the start of a step.
type uiPart struct {
	block  *Block
	result *Block
}

// uiCall is where a call is among the messages.
type uiCall struct{ message, part int }

// pairID returns by what a call and its result are paired: the number that arrange gave both, or else the id.
func pairID(p *Block) string {
	if p.pair > 0 {
		return "#" + strconv.Itoa(p.pair)
	}
	return p.CallID
}

func (w *uiWriter) write(n *Message) {
	begun := false
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if p.Kind == Result {
			w.answer(n, p)
			w.results = true
			continue
		}
		if !begun || w.list[len(w.list)-1].role != w.roleOf(n) {
			w.begin(n)
			begun = true
		}
		w.addPart(p)
	}
	if len(n.Blocks) == 0 && n.Role != Tool {
		w.begin(n)
	}
}

// begin makes sure that the last message is the one that a Message belongs to. Consecutive messages of the assistant
// are one message, unless they came as several messages of this format.
func (w *uiWriter) begin(n *Message) {
	role := w.roleOf(n)
	goesOn := false
	if len(w.list) > 0 && n.Role == Assistant {
		last := &w.list[len(w.list)-1]
		goesOn = last.role == role && w.whole(last.first) == w.whole(n) && (w.whole(n) < 0 || n.Part > 0)
	}
	if !goesOn {
		w.open.Turn()
		w.list = append(w.list, uiMessage{role: role, first: n})
	}
	m := &w.list[len(w.list)-1]
	if n.Format == w.target && m.extra == nil {
		m.extra = n.Extra
	}
	if n.Role == Assistant && (!goesOn || w.results || w.whole(n) >= 0) {
		m.parts = append(m.parts, uiPart{})
	}
	if speaker := w.speaker(n); speaker != nil {
		m.parts = append(m.parts, uiPart{block: &Block{Kind: Text, Text: speaker}})
	}
	w.results = false
}

// whole returns which message of the target a Message is a part of, -1 for none.
func (w *uiWriter) whole(n *Message) int {
	if n.Format == w.target && n.Raw != nil {
		return n.Origin
	}
	return -1
}

// addPart adds a block to the last message.
func (w *uiWriter) addPart(p *Block) {
	m := &w.list[len(w.list)-1]
	if p.Kind == Call {
		w.open.Call(pairID(p), p.toolName(), uiCall{message: len(w.list) - 1, part: len(m.parts)})
	}
	m.parts = append(m.parts, uiPart{block: p})
}

// answer puts a result into the part of its call, the nearest that is open. If it has no call, it gets a new one.
func (w *uiWriter) answer(n *Message, p *Block) {
	if c, ok := w.open.Answer(pairID(p), p.toolName()); ok {
		m := &w.list[c.message]
		m.parts[c.part].result = p
		m.untouched = false
		return
	}
	if last := len(w.list) - 1; last < 0 || w.list[last].role != assistantRole || w.list[last].untouched {
		w.list = append(w.list, uiMessage{role: assistantRole, first: n, parts: []uiPart{{}}})
	}
	m := &w.list[len(w.list)-1]
	m.parts = append(m.parts, uiPart{block: &Block{Kind: Call, CallID: p.CallID, Name: p.Name}, result: p})
}

func (w *uiWriter) emit(m *uiMessage) {
	if m.untouched {
		w.add(m.first.Raw)
		return
	}
	body := []byte{'{'}
	if hasUIID(m.extra) {
		body = append(body, m.extra...)
	} else {
		body = wrap(body, `"id":"`, w.id(m), "\"")
		body = appendMembers(body, wrap(nil, "{", m.extra, "}"), false, []string{"id"})
	}
	body = wrap(body, `,"role":`, m.role, `,"parts":[`)
	first := len(body)
	for i := range m.parts {
		body = w.part(separate(body, first), &m.parts[i])
	}
	if m.role != assistantRole {
		w.written = nil // nobody else makes calls
	}
	w.add(append(body, "]}"...))
}

// id names a message that has no id. It is the same whenever the view is read, also when the message has grown. Of
// several that one message became, the others' are made of the digest of its bytes, which are read once.
func (w *uiWriter) id(m *uiMessage) string {
	const size = 12
	from := m.first.Raw
	if again := len(from) > 0 && len(w.named) > 0 && &from[0] == &w.named[0]; again {
		if w.digest == ([sha256.Size]byte{}) {
			w.digest = sha256.Sum256(from)
		}
		from = w.digest[:]
	} else {
		w.named, w.digest = from, [sha256.Size]byte{}
	}
	sum := sha256.Sum256(append(strconv.AppendInt(nil, int64(len(w.bodies)), 10), from...))
	return "msg_" + hex.EncodeToString(sum[:size])
}

func (w *uiWriter) part(dst []byte, at *uiPart) []byte {
	p := at.block
	switch {
	case p == nil:
		return append(dst, `{"type":"step-start"}`...)
	case p.Kind == Call:
		w.wrote(p)
		if at.result != nil {
			w.wrote(at.result)
		}
		return w.tool(dst, p, at.result)
	case w.own(p):
		return append(dst, p.Raw...)
	case p.Kind == Reasoning:
		return w.reasoning(dst, p)
	case (p.Kind == Image || p.Kind == File) && (p.Media.Data != nil || p.Media.URL != nil):
		return appendUIFile(dst, p)
	}
	dst = with(dst, `{"type":"text","text":`, substitute(p))
	if p.Kind == Text {
		dst = appendGoogleSignature(dst, "providerMetadata", p)
	}
	return append(dst, '}')
}

// reasoning writes a thought with what its provider's package of the AI SDK keeps in providerMetadata.
func (w *uiWriter) reasoning(dst []byte, p *Block) []byte {
	dst = append(dst, `{"type":"reasoning","text":`...)
	metadata := reasoningMetadata(p)
	if p.Text != nil {
		dst = append(dst, p.Text...)
	} else {
		dst = append(dst, `""`...)
	}
	if metadata != nil {
		dst = with(dst, `,"providerMetadata":`, metadata)
	}
	return append(dst, '}')
}

func reasoningMetadata(p *Block) []byte {
	if p.Format == session.AISDK {
		return p.Signature
	}
	if !isSigned(p.Signature) {
		return nil
	}
	provider, name := "", ""
	switch p.Format {
	case session.Anthropic:
		provider, name = "anthropic", "signature"
		if member(p.Raw, "data") != (Span{}) {
			name = "redactedData"
		}
	case session.OpenAIResponses:
		provider, name = "openai", "reasoningEncryptedContent"
	case session.Gemini:
		provider, name = "google", "thoughtSignature"
	default:
		return nil
	}
	return wrap(nil, `{"`+provider+`":{"`+name+`":`, p.Signature, "}}")
}

func appendGoogleSignature(dst []byte, name string, p *Block) []byte {
	if !isSigned(p.Signature) {
		return dst
	}
	dst = wrap(dst, `,"`, name, `":{"google":{"thoughtSignature":`)
	return wrap(dst, "", p.Signature, "}}")
}

func appendUIFile(dst []byte, p *Block) []byte {
	dst = wrap(dst, `{"type":"file","mediaType":`, uiMediaTypeOf(p), `,"url":`)
	dst = appendURL(dst, p)
	if p.Media.Name != nil {
		dst = with(dst, `,"filename":`, p.Media.Name)
	}
	if p.Media.Detail != nil {
		dst = wrap(dst, `,"providerMetadata":{"openai":{"imageDetail":`, p.Media.Detail, "}}")
	}
	return append(dst, '}')
}

// uiMediaTypeOf returns the media type, as a pattern for an image whose type is not known: the AI SDK then looks at its
// bytes.
func uiMediaTypeOf(p *Block) []byte {
	if p.Media.Type == nil && p.Kind == Image {
		return []byte(`"image/*"`)
	}
	return mediaType(p)
}

// tool writes a call with its result, nil for none, as one part.
func (w *uiWriter) tool(dst []byte, call, result *Block) []byte {
	if w.own(call) && w.hasResult(call.Raw, result) {
		return append(dst, call.Raw...)
	}
	dst = appendToolName(append(dst, '{'), toolName(call))
	dst = rawjson.Quote(append(dst, `,"toolCallId":`...), []byte(call.CallID))
	value := call.Value
	if value == nil {
		value = []byte("{}")
	}
	dst = with(dst, `,"input":`, value)
	dst = w.state(dst, call, result)
	if call.Format != w.target {
		dst = appendGoogleSignature(dst, "callProviderMetadata", call)
		return append(dst, '}')
	}
	return append(appendMembers(dst, call.Raw, false, writtenOfTool), '}')
}

// hasResult reports whether a tool part of this format already contains the result of its call.
func (w *uiWriter) hasResult(raw []byte, result *Block) bool {
	if result == nil {
		return !toolDone(raw)
	}
	return w.own(result) && bytes.Equal(raw, result.Raw)
}

func toolDone(raw []byte) bool { return slices.Contains(finalStates, stringMember(raw, "state")) }

// writtenOfTool are the members of a tool part that are not passed on.
var writtenOfTool = append([]string{"type", "toolCallId", "toolName", "input", "rawInput"}, resultOfTool...)

// resultOfTool are the members that hold the state and the result of the call.
var resultOfTool = []string{"state", "output", "errorText", "approval", "preliminary"}

// state writes the state of a call, and its result.
func (w *uiWriter) state(dst []byte, call, result *Block) []byte {
	switch {
	case result == nil && call.Format == w.target && !toolDone(call.Raw) && fitsUI(call.Raw):
		return appendMembers(dst, call.Raw, true, resultOfTool)
	case result == nil:
		return append(dst, `,"state":"input-available"`...)
	case w.own(result):
		return appendMembers(dst, result.Raw, true, resultOfTool)
	case result.IsError:
		return with(dst, `,"state":"output-error","errorText":`, errorText(result))
	}
	return w.output(append(dst, `,"state":"output-available","output":`...), result.Content)
}

// appendToolName appends the type of a tool part: the tool's name is in it if that is of plain characters, else beside.
func appendToolName(dst, name []byte) []byte {
	if inner := name[1 : len(name)-1]; provider.PlainID(string(inner)) {
		return wrap(dst, `"type":"tool-`, inner, "\"")
	}
	return with(dst, `"type":"dynamic-tool","toolName":`, name)
}

// output appends what a tool returned: a text, or a list if it is anything else.
func (w *uiWriter) output(dst []byte, content []Block) []byte {
	switch {
	case len(content) == 0:
		return append(dst, `""`...)
	case len(content) == 1 && content[0].Kind == Text:
		return append(dst, content[0].Text...)
	}
	dst = append(dst, `{"type":"content","value":[`...)
	first := len(dst)
	for i := range content {
		dst = w.outputBlock(separate(dst, first), &content[i])
	}
	return append(dst, "]}"...)
}

func (w *uiWriter) outputBlock(dst []byte, p *Block) []byte {
	m := &p.Media
	tool := foundTool(p.Raw)
	isMedia := p.Kind == Image || p.Kind == File
	switch {
	case isMedia && m.Data != nil:
		dst = with(dst, `{"type":"media","mediaType":`, mediaType(p))
		dst = with(dst, `,"data":`, m.Data)
	case isMedia && m.URL != nil:
		dst = append(wrap(dst, `{"type":"`, p.Kind.String(), `-url","url":`), m.URL...)
		if m.Type != nil {
			dst = with(dst, `,"mediaType":`, m.Type)
		}
	case tool != nil && (w.server == nil || w.server.Package == "" || w.server.Package == anthropicOwner):
		dst = append(dst, `{"type":"custom","providerOptions":{"anthropic":{"type":"`+foundInUI+`","toolName":`...)
		dst = append(append(dst, tool...), "}}"...)
	default:
		dst = with(dst, `{"type":"text","text":`, substitute(p))
	}
	if isMedia && m.Name != nil && (m.Data != nil || m.URL != nil) {
		dst = with(dst, `,"filename":`, m.Name)
	}
	return append(dst, '}')
}

// errorText returns the content of a failed tool's result as one text.
func errorText(result *Block) []byte {
	texts := make([][]byte, len(result.Content))
	for i := range result.Content {
		texts[i] = substitute(&result.Content[i])
	}
	return joinLines(texts)
}
