package wire

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// encoder collects messages.
type encoder struct {
	target session.Format
	server *provider.Facts // what the server takes; nil for what the format can express
	bodies [][]byte

	traced  bool       // sources is wanted
	sources [][]*Block // by body: the calls and results that are parts of it, in the order of these parts
	written []*Block   // of the body that is being written
}

func (e *encoder) add(body []byte) {
	e.bodies = append(e.bodies, body)
	if e.traced {
		e.sources = append(e.sources, e.written)
		e.written = nil
	}
}

// wrote records that a call or a result is written as one.
func (e *encoder) wrote(p *Block) {
	if e.traced {
		e.written = append(e.written, p)
	}
}

// own reports whether the block can be written as its Raw.
func (e *encoder) own(p *Block) bool { return p.Format == e.target && p.Raw != nil && !p.Edited }

// withoutSealed returns the blocks but for thoughts that only another provider can read.
func (e *encoder) withoutSealed(blocks []Block) []Block {
	sealed := func(p Block) bool { return p.Kind == Reasoning && p.Text == nil && !e.own(&p) }
	if !slices.ContainsFunc(blocks, sealed) {
		return blocks
	}
	return slices.DeleteFunc(slices.Clone(blocks), sealed)
}

// The roles that most formats write alike, as string literals.
const (
	userRole      = `"user"`
	assistantRole = `"assistant"`
)

// roleOf returns the role that a message is written with, as a string literal.
func (e *encoder) roleOf(n *Message) string {
	switch {
	case n.Role == Assistant && e.target == session.Gemini:
		return `"model"`
	case n.Role == Assistant:
		return assistantRole
	case n.Role == System && fromOpenAI(e.target) && fromOpenAI(n.Format):
		if stringMember(n.Raw, "role") == "developer" && (e.server == nil || e.server.KnowsRole("developer")) {
			return `"developer"`
		}
		return `"system"`
	case n.Role == System:
		return `"system"`
	case n.Role == Other && n.Format == e.target && n.Name != nil:
		return string(n.Name)
	}
	return userRole
}

// speaker returns a note with the name of the speaker of a message of another format, nil if it has none. Chat
// Completions has a member for the name.
func (e *encoder) speaker(n *Message) []byte {
	if n.Name == nil || n.Role == Tool || n.Format == e.target {
		return nil
	}
	return note("From %s", unquoted(n.Name))
}

// extra appends the members of a message of the target's own format that the model has no words for.
func (e *encoder) extra(dst []byte, n *Message) []byte {
	if n.Format != e.target || len(n.Extra) == 0 {
		return dst
	}
	return with(dst, ",", n.Extra)
}

// toolName returns the name of the tool of a call, which every provider requires.
func toolName(p *Block) []byte {
	if p.Name == nil || string(p.Name) == `""` {
		return rawjson.Quote(nil, []byte(PlainToolName("")))
	}
	return p.Name
}

// appendObject appends a value that has to be an object: any other one as its only member. That stays an object when it
// is read again, for many tools have a parameter named input.
func appendObject(dst []byte, name string, value []byte) []byte {
	switch {
	case len(value) == 0:
		return append(dst, "{}"...)
	case value[0] == '{':
		return append(dst, value...)
	}
	dst = wrap(dst, `{"`, name, `":`)
	return wrap(dst, "", value, "}")
}

// appendInput appends the arguments of a call where they have to be an object. A text that is empty, or null, is none.
func appendInput(dst, value []byte) []byte {
	if len(value) > 0 && value[0] == '"' && (blank(value) || string(value) == `"null"`) {
		value = nil
	}
	return appendObject(dst, "input", value)
}

// appendURL appends where an image or a file is, or a URL that holds it.
func appendURL(dst []byte, p *Block) []byte {
	m := &p.Media
	if m.Data == nil {
		return append(dst, m.URL...)
	}
	kind := mediaType(p)
	dst = with(dst, `"data:`, kind[1:len(kind)-1])
	return with(dst, `;base64,`, m.Data[1:])
}

// typeIn returns the type that the first bytes of base64 tell, "" for none.
func typeIn(literal []byte) string {
	head, _ := firstBytes(bytes.Trim(literal, `"=`))
	return typeOf(head)
}

// mediaType returns the type of an image or a file, as a string literal, also where it is not known: providers look
// at the bytes of images, but require a type.
func mediaType(p *Block) []byte {
	switch {
	case p.Media.Type != nil:
		return p.Media.Type
	case p.Kind == Image:
		return rawjson.Quote(nil, []byte(cmp.Or(typeIn(p.Media.Data), "image/jpeg")))
	}
	return rawjson.Quote(nil, []byte(cmp.Or(typeIn(p.Media.Data), "application/octet-stream")))
}

// isLegacy reports whether a call of a Chat message is its function_call, whose id is made of the function's name, or
// whether a result is that of such a call.
func (n *Message) isLegacy(p *Block) bool {
	if p.CallID != functionPrefix+string(unquotedName(p.Name)) {
		return false
	}
	if p.Kind == Result {
		return stringMember(n.Raw, "role") == "function"
	}
	return p.Raw != nil && member(p.Raw, "function") == (Span{}) && member(p.Raw, "custom") == (Span{})
}

// untouched counts the Messages at the beginning of the list that are one whole message of the target, all of them as
// they were decoded. It returns 0 if the list does not begin with such a message.
func untouched(target session.Format, list []Message) int {
	first := &list[0]
	if first.Format != target || first.Raw == nil {
		return 0
	}
	n := 0
	for n < len(list) && list[n].Raw != nil && list[n].Origin == first.Origin && list[n].Part == n && !list[n].Edited {
		n++
	}
	if n != first.Of {
		return 0
	}
	return n
}

// fromOpenAI reports whether a format is one of OpenAI's, which share ids of files, roles and what calls look like.
func fromOpenAI(f session.Format) bool {
	return f == session.OpenAIChat || f == session.OpenAIResponses
}
