package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// UserMessage returns a message of the user with a text, which is a string literal.
func UserMessage(f session.Format, literal []byte) []byte {
	message := Message{Role: User, Blocks: []Block{{Kind: Text, Text: literal}}, Edited: true}
	return Encode(f, []Message{message})[0]
}

// Rendition is a view in one format.
type Rendition struct {
	Bodies  [][]byte // messages of the target
	System  int      // how many of them are the pinned head
	Repairs []Repair
}

// Render writes a view in a format so that its provider takes it. Nothing is repaired that the provider
// would take: a message of the target's own format in its place comes out as the bytes that came in. What it repairs,
// it lists.
//
// The steps, each over the whole view: prepare (every message alone), arrange (calls and their results), merge, match
// (the forms of OpenAI's calls), moveLateReasoning and dropIdleReasoning, sign (Gemini's calls), rename (ids),
// limitCacheMarks, ends (first and last role).
func Render(target session.Format, view []Stored, o Options) *Rendition {
	r := &repairer{target: target, provider: provider.Of(target), Options: o, view: view}
	list := r.merge(r.arrange(r.prepare()))
	r.match(list)
	r.moveLateReasoning(list)
	r.dropIdleReasoning(list)
	r.sign(list)
	r.rename(list)
	r.limitCacheMarks(list)
	list = r.ends(list)
	return &Rendition{Bodies: Encode(target, list), System: pinnedHead(list), Repairs: r.repairs}
}

// Encode writes the Messages in a format. A run of them that is one whole, untouched message of that format comes out
// as the bytes that came in.
func Encode(target session.Format, list []Message) [][]byte {
	e := &encoder{target: target}
	if target == session.AISDK {
		encodeAISDK(e, list) // a message holds the results of its calls: only there it is known which are untouched
		return e.bodies
	}
	for len(list) > 0 {
		n := untouched(target, list)
		if n > 0 {
			e.add(list[0].Raw)
		} else {
			n = countEdited(target, list)
			encoders[target](e, list[:n])
		}
		list = list[n:]
	}
	return e.bodies
}

// encoders write Messages of any format, none of them an untouched message of this format, in the format. Their
// order, pairing and roles are as the format requires them (see arrange); what it cannot express is written as
// substitute writes it.
var encoders = map[session.Format]func(e *encoder, run []Message){
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

// Translate writes consecutive messages in another format, for callers that continue to work on them: nothing is
// repaired that Render would repair. Each message has the seq of the last one that is in it. Where the target has
// results in one message with their calls, several become one; otherwise one may become several of its seq.
func Translate(target session.Format, run []Stored) []Stored {
	r := &repairer{target: target, view: run}
	list := make([]Message, 0, len(run))
	for i := range run {
		list = append(list, r.decode(i)...)
	}
	nameResults(list)
	var out []Stored
	for len(list) > 0 {
		n := together(target, list)
		for _, body := range Encode(target, list[:n]) {
			out = append(out, Stored{Format: target, Body: body, Seq: run[list[n-1].Origin].Seq})
		}
		list = list[n:]
	}
	return out
}

// nameResults gives results without a name the names of their tools.
func nameResults(list []Message) {
	var open units.Pairer[[]byte]
	for i := range list {
		for j := range list[i].Blocks {
			p := &list[i].Blocks[j]
			switch p.Kind {
			case Call:
				open.Call(p.CallID, p.toolName(), p.Name)
			case Result:
				if name, ok := open.Answer(p.CallID, p.toolName()); ok && p.Name == nil {
					p.Name = name
				}
			}
		}
	}
}

// together counts the Messages that one step of the assistant consists of where it is one message, or that were one.
func together(target session.Format, list []Message) int {
	n := 1
	for n < len(list) {
		a, b := &list[n-1], &list[n]
		step := b.Role == Tool || a.Role == Assistant && b.Role == Assistant
		if a.Origin != b.Origin && !(target == session.AISDK && list[0].Role == Assistant && step) {
			break
		}
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
