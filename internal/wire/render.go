package wire

import (
	"context"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// UserMessage returns a message of the user with a text, which is a string literal.
func UserMessage(f session.Format, literal []byte) []byte {
	message := Message{Role: User, Blocks: []Block{{Kind: Text, Text: literal}}, Edited: true}
	return Encode(f, []Message{message})[0]
}

// RenditionVersion changes whenever Render writes other bytes for the same view than before: it is in the ETags of
// readers. A test compares it with a digest of what Render writes.
const RenditionVersion = "30"

// Rendition is a view in one format.
type Rendition struct {
	Bodies  [][]byte // messages of the target
	System  int      // how many of them are the pinned head
	Repairs []Repair

	ToolNames map[string]string // the names of tools in the view by those in the log, where they differ; nil for none
}

// Render writes a view in a format so that its provider takes it. Nothing is repaired that the provider
// would take: a message of the target's own format in its place comes out as the bytes that came in. What it repairs,
// it lists.
//
// The steps, each over the whole view: prepare (every message alone), unbind (thinking behind a change), arrange (calls
// and their results), fitPackage (of the AI SDK), merge, splitCalls, unbind (behind late results), forgetThoughts (that
// were removed), settleMCPApprovals, settleSearches, renameTools, match (the forms of OpenAI's calls), settleSystem and
// settleServerTools (Anthropic's own), dropIdleReasoning, sign (calls of Gemini), rename (ids), limitCacheMarks, ends
// (first and last role), dropTrailing (thoughts), limitMessages, fitOrder (for a dialect).
//
// The only error is that of a context that has ended: reading and writing look at it before each message, so that a
// caller who has left costs no more than the message at hand and the steps between, which read no JSON.
func Render(ctx context.Context, target session.Format, view []Stored, o Options) (*Rendition, error) {
	r := repairerOf(target, view)
	r.Options, r.provider = o, o.server(target)
	list, err := r.prepare(ctx)
	if err != nil {
		return nil, err
	}
	list = r.splitCalls(r.merge(r.fitPackage(r.arrange(r.unbind(list, o.Unbound)))))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list = r.unbind(list, r.late)
	r.forgetThoughts(list)
	r.settleMCPApprovals(list)
	list = r.settleSearches(list)
	r.renameTools(list)
	r.match(list)
	list = r.settleSystem(list)
	r.settleServerTools(list)
	list = r.dropIdleReasoning(list)
	r.sign(list)
	r.rename(list)
	r.limitCacheMarks(list)
	list = r.fitOrder(r.limitMessages(r.dropTrailing(r.ends(list))))
	e := &encoder{target: target, server: r.provider}
	if err := e.encode(ctx, list); err != nil {
		return nil, err
	}
	return &Rendition{Bodies: e.bodies, System: pinnedHead(list), Repairs: r.repairs, ToolNames: r.toolNames}, nil
}

// Encode writes the Messages in a format. A run of them that is one whole, untouched message of that format comes out
// as the bytes that came in.
func Encode(target session.Format, list []Message) [][]byte {
	e := &encoder{target: target}
	_ = e.encode(context.Background(), list) // which never ends
	return e.bodies
}

// encode does what Encode does until ctx ends.
func (e *encoder) encode(ctx context.Context, list []Message) error {
	if e.target == session.AISDK {
		return encodeAISDK(ctx, e, list) // a message holds the results of its calls: only there the untouched are known
	}
	for len(list) > 0 {
		n := untouched(e.target, list)
		if n > 0 {
			e.add(list[0].Raw)
		} else {
			n = countEdited(e.target, list)
			for i := range list[:n] {
				list[i].Blocks = e.withoutSealed(list[i].Blocks)
			}
			if err := encoders[e.target](ctx, e, list[:n]); err != nil {
				return err
			}
		}
		list = list[n:]
	}
	return nil
}

// encoders write Messages of any format, none of them an untouched message of this format, in the format. Their
// order, pairing and roles are as the format requires them (see arrange); what it cannot express is written as
// substitute writes it.
var encoders = map[session.Format]func(ctx context.Context, e *encoder, run []Message) error{
	session.OpenAIChat:      encodeChat,
	session.Anthropic:       encodeAnthropic,
	session.OpenAIResponses: encodeResponses,
	session.Gemini:          encodeGemini,
	session.AISDK:           encodeAISDK,
}

// countEdited counts the Messages before the next one that is untouched. All results of a turn are one run in Chat
// Completions: what some of them show comes after the last.
func countEdited(target session.Format, list []Message) int {
	n := 1
	for n < len(list) && (untouched(target, list[n:]) == 0 || target == session.OpenAIChat && list[n].Role == Tool) {
		n++
	}
	return n
}

// AppendSystem appends the leading system messages as the value of the member that their provider takes them in.
// Anthropic's system: the content of a single message unchanged, else one array of all their text blocks. Gemini's
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
		for part := range elementsOf(body, "parts") {
			dst = append(separate(dst, first), part...)
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
