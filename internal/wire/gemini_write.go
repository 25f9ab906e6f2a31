package wire

import (
	"context"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

func encodeGemini(ctx context.Context, e *encoder, run []Message) error {
	w := geminiWriter{encoder: e}
	for i := range run {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.write(&run[i])
	}
	w.flush()
	return nil
}

// geminiWriter writes contents: consecutive messages of the assistant become one, and so do consecutive results, since
// Gemini requires all calls of a turn in one content, and all their results, and nothing else, in the next.
type geminiWriter struct {
	*encoder
	role    string // of the content that is being written, as a string literal; "" before the first
	answers bool   // it holds results
	parts   []byte
	extra   []byte
	media   []byte // parts: the images and files of its results
}

func (w *geminiWriter) write(n *Message) {
	role := w.roleOf(n)
	if !w.continues(n, role) {
		w.flush()
	}
	if speaker := w.speaker(n); speaker != nil {
		w.turn(role, false)
		w.text(speaker)
	}
	for i := range n.Blocks {
		if p := &n.Blocks[i]; p.Kind == Result {
			w.turn(userRole, true)
			w.result(p)
		} else {
			w.turn(role, false)
			w.block(p)
		}
	}
	if len(n.Blocks) == 0 && n.Role != Tool {
		w.turn(role, false)
	}
	if n.Format == w.target && w.extra == nil {
		w.extra = n.Extra
	}
}

// continues reports whether a message belongs to the content that is being written.
func (w *geminiWriter) continues(n *Message, role string) bool {
	if w.answers {
		return len(n.Blocks) > 0 && n.Blocks[0].Kind == Result
	}
	return n.Role == Assistant && w.role == role
}

// turn makes the content that is being written one of the role.
func (w *geminiWriter) turn(role string, answers bool) {
	if w.role != "" && (w.role != role || w.answers != answers) {
		w.flush()
	}
	w.role, w.answers = role, answers
}

func (w *geminiWriter) flush() {
	if w.role == "" {
		return
	}
	w.content(w.role, w.parts, w.extra)
	if len(w.media) > 0 {
		w.content(userRole, w.media, nil)
	}
	*w = geminiWriter{encoder: w.encoder, parts: w.parts[:0], media: w.media[:0]}
}

func (w *geminiWriter) content(role string, parts, extra []byte) {
	body := make([]byte, 0, len(parts)+len(extra)+64)
	body = wrap(body, `{"role":`, role, `,"parts":[`)
	body = wrap(body, "", parts, "]")
	if len(extra) > 0 {
		body = with(body, ",", extra)
	}
	w.add(append(body, '}'))
}

// block writes a block that is not a result.
func (w *geminiWriter) block(p *Block) {
	if p.Kind == Call {
		w.wrote(p)
	}
	switch {
	case w.own(p):
		w.parts = append(separate(w.parts, 0), p.Raw...)
	case p.Kind == Text:
		w.parts = appendText(w.parts, p.Text, w.signatureMember(p))
	case p.Kind == Reasoning:
		w.parts = appendText(w.parts, p.Text, append([]byte(`,"thought":true`), w.signatureMember(p)...))
	case p.Kind == Call:
		w.call(p)
	case p.Kind == Image, p.Kind == File:
		w.parts = appendGeminiMedia(w.parts, p)
	default:
		w.text(substitute(p))
	}
}

func (w *geminiWriter) text(literal []byte) { w.parts = appendText(w.parts, literal, nil) }

// appendText appends a part that is a text with further members.
func appendText(dst, literal, more []byte) []byte {
	dst = with(separate(dst, 0), `{"text":`, literal)
	return wrap(dst, "", more, "}")
}

// signatureMember returns the member for the signature of a block: Google's, or that which a repair put on a call.
// That of a thought is its provider's.
func (w *geminiWriter) signatureMember(p *Block) []byte {
	if p.Signature == nil || p.Signature[0] != '"' || p.Kind == Reasoning && p.Format != w.target {
		return nil
	}
	return append([]byte(`,"thoughtSignature":`), p.Signature...)
}

func (w *geminiWriter) call(p *Block) {
	w.parts = append(separate(w.parts, 0), `{"functionCall":{`...)
	w.parts = appendFunction(w.parts, p)
	w.parts = append(w.parts, `,"args":`...)
	w.parts = appendInput(w.parts, p.Value)
	w.parts = append(w.parts, '}')
	w.parts = wrap(w.parts, "", w.signatureMember(p), "}")
}

// appendFunction appends the id, unless it was made of the name, and the name, which Gemini always requires.
func appendFunction(dst []byte, p *Block) []byte {
	if p.CallID != "" && !strings.HasPrefix(p.CallID, functionPrefix) {
		dst = append(rawjson.Quote(append(dst, `"id":`...), []byte(p.CallID)), ',')
	}
	return with(dst, `"name":`, toolName(p))
}

func (w *geminiWriter) result(p *Block) {
	w.wrote(p)
	if w.own(p) {
		w.parts = append(separate(w.parts, 0), p.Raw...)
		return
	}
	name := "output"
	if p.IsError {
		name = "error"
	}
	w.parts = append(separate(w.parts, 0), `{"functionResponse":{`...)
	w.parts = appendFunction(w.parts, p)
	w.parts = append(w.parts, `,"response":`...)
	w.parts = appendObject(w.parts, name, w.texts(p))
	w.parts = append(w.parts, "}}"...)
}

// texts joins the texts of a result, and collects its images and files, which come after the results.
func (w *geminiWriter) texts(p *Block) []byte {
	var texts [][]byte
	for i := range p.Content {
		switch c := &p.Content[i]; c.Kind {
		case Text:
			texts = append(texts, c.Text)
		case Image, File:
			w.media = appendText(w.media, note("%s of the result of call %s", c.Kind, shownID(p.CallID)), nil)
			w.media = appendGeminiMedia(w.media, c)
		default:
			texts = append(texts, substitute(c))
		}
	}
	return joinLines(texts)
}

// appendGeminiMedia appends an image or a file as a part. A note with the file's name, for which the API has no
// member, comes first; what is neither in the message nor at a URL is a note.
func appendGeminiMedia(dst []byte, p *Block) []byte {
	m := &p.Media
	if m.Data == nil && m.URL == nil {
		return appendText(dst, substitute(p), nil)
	}
	if m.Name != nil {
		dst = appendText(dst, note("%s %s", p.Kind, unquoted(m.Name)), nil)
	}
	dst = separate(dst, 0)
	if m.Data == nil {
		dst = with(dst, `{"fileData":{"mimeType":`, mediaType(p))
		return wrap(dst, `,"fileUri":`, m.URL, "}}")
	}
	dst = with(dst, `{"inlineData":{"mimeType":`, mediaType(p))
	return wrap(dst, `,"data":`, m.Data, "}}")
}
