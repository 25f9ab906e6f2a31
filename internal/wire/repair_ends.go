package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// merge makes one message of consecutive ones of the assistant that came in another format, where several would be
// odd or refused, and of consecutive results.
func (r *repairer) merge(list []Message) []Message {
	switch r.target {
	case session.OpenAIResponses, session.AISDK:
		return list
	case session.OpenAIChat, session.Gemini:
		r.hold(list)
	}
	var out []Message
	for i := range list {
		n := &list[i]
		if len(out) == 0 || !r.merges(&out[len(out)-1], n) {
			out = append(out, *n)
			continue
		}
		last := &out[len(out)-1]
		if r.keeps(last) && r.keeps(n) {
			rule := map[Role]string{Assistant: "V-G1", Tool: "V-G2"}[n.Role]
			r.repaired(rule, "contents_joined", n, "it is one content with what stands before it")
		}
		if last.Format != n.Format {
			last.Extra = nil
		}
		last.Blocks = append(slices.Clip(last.Blocks), n.Blocks...)
		last.Edited = true
	}
	return out
}

// hold keeps the images of the last results back while calls of their unit wait for theirs: where an image cannot
// stand in a result, the user's message that shows it would part them.
func (r *repairer) hold(list []Message) {
	for i := len(list) - 1; r.inFlight && i >= 0 && list[i].Role == Tool; i-- {
		n := &list[i]
		each(list[i:i+1], Result, func(_ *Message, p *Block) { n.Edited = p.nameShown() || n.Edited })
	}
}

// nameShown puts the names of a result's images and files into their places, and reports whether there are any.
func (p *Block) nameShown() bool {
	p.Content = slices.Clone(p.Content)
	for i := range p.Content {
		if c := &p.Content[i]; c.Kind == Image || c.Kind == File {
			*c = Block{Kind: Text, Text: note("%s: it is shown when all results are there", c.Kind)}
			p.Edited = true
		}
	}
	return p.Edited
}

func (r *repairer) merges(a, b *Message) bool {
	switch {
	case a.Role != b.Role:
		return false
	case !r.keeps(a) || !r.keeps(b):
		return a.Role == Assistant || a.Role == Tool && r.target != session.OpenAIChat
	}
	return r.target == session.Gemini && (a.Role == Assistant || a.Role == Tool)
}

// sign gives the first call of each step of the current turn a signature, if it has none. Steps of earlier turns, where
// Gemini does not look, have the one that they had when theirs was the current turn, so that the view's beginning stays
// what the provider has cached; but for contents that came as they are.
func (r *repairer) sign(list []Message) {
	if r.target != session.Gemini || provider.IsOlderGemini(r.Model) {
		return
	}
	current := true
	for i := len(list) - 1; i >= 0; i-- {
		n := &list[i]
		current = current && n.Role != User
		if n.Role == Assistant && (current || n.Format != session.Gemini) && n.signFirst() {
			r.repaired("V-G3", "signature_skipped", n,
				"no signature came with the first call: it says that there is none")
		}
	}
}

func (n *Message) signFirst() bool {
	i := slices.IndexFunc(n.Blocks, func(p Block) bool { return p.Kind == Call })
	if i < 0 || isSigned(n.Blocks[i].Signature) {
		return false
	}
	n.Blocks = slices.Clone(n.Blocks)
	p := &n.Blocks[i]
	p.Signature = []byte(`"` + standIn + `"`)
	if p.Raw != nil && p.Format == session.Gemini {
		unsigned := withoutSignature(p.Raw)
		unsigned = unsigned[:len(unsigned)-1]
		p.Raw = wrap(unsigned, `,"thoughtSignature":`, p.Signature, "}")
	}
	n.Edited = true
	return true
}

// The texts that are inserted where a provider requires a message of the user.
const (
	beginText    = "[The conversation begins here.]"
	continueText = "Continue."
)

// ends repairs the first and the last message.
func (r *repairer) ends(list []Message) []Message {
	head := pinnedHead(list)
	rest := list[head:]
	if len(rest) == 0 {
		return list
	}
	if r.provider.FirstUser && rest[0].Role != User {
		r.repaired(r.provider.Codes.First, "first_user", nil, "a message of the user stands before the first one")
		list = slices.Insert(list, head, userText(beginText))
	}
	last := &list[len(list)-1]
	if last.Role != Assistant && last.Role != System || last.has(Call) || r.inFlight {
		return list
	}
	if rule := r.refusesLastAssistant(); rule != "" {
		r.repaired(rule, "last_user", nil, "a message of the user stands behind the last one")
		return append(list, userText(continueText))
	}
	if r.target == session.Anthropic {
		r.trimEnd(last)
	}
	return list
}

func userText(text string) Message {
	return Message{Role: User, Blocks: []Block{{Kind: Text, Text: rawjson.Quote(nil, []byte(text))}}, Edited: true}
}

// refusesLastAssistant names the rule by which the last message has to be the user's, or nothing.
func (r *repairer) refusesLastAssistant() string {
	switch {
	case r.target == session.Gemini:
		return "V-G4"
	case r.target == session.Anthropic && provider.RefusesPrefill(r.Model):
		return "V-A6"
	case r.target == session.OpenAIChat && provider.IsMistral(r.Model):
		return "V-M1"
	}
	return ""
}

// trimEnd removes the white space at the end of the last text, also of one that replaces what only another format
// says.
func (r *repairer) trimEnd(n *Message) {
	if len(n.Blocks) == 0 {
		return
	}
	p := n.Blocks[len(n.Blocks)-1]
	if p.Kind != Text {
		if p.Kind == Call || p.Kind == Result || p.Format == r.target && p.Raw != nil && !p.Edited {
			return
		}
		p = Block{Kind: Text, Text: substitute(&p)}
	}
	trimmed := trimRight(p.Text)
	if len(trimmed) == len(p.Text) {
		return
	}
	p.Text = trimmed
	p.Edited = true
	n.Edited = true
	n.Blocks = append(slices.Clone(n.Blocks[:len(n.Blocks)-1]), p)
	r.repaired("V-A6", "trailing_space", n, "white space at the end of the last text is left out")
}

// trimRight takes the white space off the end of the text of a literal, which may hold what no other encoding can.
func trimRight(literal []byte) []byte {
	inner := literal[1 : len(literal)-1]
	for {
		n := len(inner)
		switch {
		case bytes.HasSuffix(inner, []byte(" ")):
			n--
		case escaped(inner, 2) && strings.IndexByte("nrt", inner[n-1]) >= 0:
			n -= 2
		case escaped(inner, 6) && slices.Contains(escapedSpaces, strings.ToLower(string(inner[n-5:]))):
			n -= 6
		default:
			return wrap(nil, `"`, inner, `"`)
		}
		inner = inner[:n]
	}
}

var escapedSpaces = []string{"u0020", "u000a", "u000d", "u0009"}

// escaped reports whether a text ends with an escape sequence of n bytes: an odd number of backslashes begins it.
func escaped(text []byte, n int) bool {
	end := len(text) - n
	if end < 0 || text[end] != '\\' {
		return false
	}
	slashes := 0
	for end-slashes >= 0 && text[end-slashes] == '\\' {
		slashes++
	}
	return slashes%2 == 1
}
