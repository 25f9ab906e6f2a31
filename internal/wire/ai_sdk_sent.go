package wire

import (
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// sender knows what the package of a provider makes of a UIMessage.
type sender struct{ *provider.Facts }

// refuses reports whether the package, or the provider, refuses a block of a message: a text takes its place.
func (s sender) refuses(role Role, p *Block) bool {
	switch p.Kind {
	case Image, File:
		if role == Assistant {
			return !s.SaysFiles || p.Media.Data == nil
		}
		return !s.knowsReference(p) || s.Shows != nil && !s.shows(p)
	case Reasoning:
		return s.Signs && s.isUnsigned(p)
	case Opaque:
		return s.refusesOther(p.Raw)
	}
	return false
}

// refusesOther reports whether a part is refused that is neither said nor a tool's of the user.
func (s sender) refusesOther(part []byte) bool {
	kind := stringMember(part, "type")
	switch {
	case isExecuted(part):
		return !s.executes(part)
	case kind == "custom":
		return !strings.HasPrefix(stringMember(part, "kind"), s.Package+".")
	case kind == "reasoning-file":
		return !s.SaysFiles || !strings.HasPrefix(stringMember(part, "url"), "data:")
	case kind == "steering-message":
		for range elementsOf(part, "parts") {
			return false
		}
		return true
	}
	return false
}

// shows reports whether the user may show an image or a file of this type. The package looks at the bytes of an image
// whose type is not told.
func (s sender) shows(p *Block) bool {
	media := string(unquotedName(p.Media.Type))
	return slices.ContainsFunc(s.Shows, func(known string) bool {
		return known == media || p.Kind == Image && (known == "image/*" || media == "" || media == "image")
	})
}

// knowsReference reports whether a file is one that the provider can find, if it is known by its name at a provider.
func (s sender) knowsReference(p *Block) bool {
	at := valueOf(p.Raw, "providerReference")
	return at == nil || at[0] == '{' && valueOf(at, s.Package) != nil
}

// isUnsigned reports whether a thought has an empty signature, which is sent and refused. One without any is not sent.
func (s sender) isUnsigned(p *Block) bool {
	kept := valueOf(reasoningMetadata(p), s.Package)
	return kept != nil && string(valueOf(kept, "signature")) == `""`
}

// isExecuted reports whether a part is of a tool that a provider ran itself.
func isExecuted(part []byte) bool {
	return string(valueOf(part, "providerExecuted")) == "true"
}

// executes reports whether the package sends the call of a tool that its provider ran itself, which has the result in
// it.
func (s sender) executes(part []byte) bool {
	state := stringMember(part, "state")
	if s.Finished && (state == "output-error" || state == "output-denied") {
		return false
	}
	returned := state == "output-available"
	name, _ := uiToolName(part)
	if known, ok := s.Executes[name]; ok {
		sent := hasTexts(valueOf(part, "input"), known.Input)
		return sent && (!returned || fitsOutput(valueOf(part, "output"), &known))
	}
	return s.executedByMetadata(part) && !(returned && s.Objects && !startsWith(valueOf(part, "output"), '{'))
}

// executedByMetadata reports whether the metadata of a part say that the provider ran its tool.
func (s sender) executedByMetadata(part []byte) bool {
	for _, of := range []string{"callProviderMetadata", "resultProviderMetadata"} {
		kept := keptFor(s.Package, valueOf(part, of))
		if s.ExecutedBy != "" && stringLiteral(kept, s.ExecutedBy) != nil {
			return true
		}
	}
	return false
}

// keptFor returns what metadata keep for the package of a provider: that of OpenAI has two names.
func keptFor(owner string, metadata []byte) []byte {
	if kept := valueOf(metadata, owner); kept != nil || owner != openAIOwner {
		return kept
	}
	return valueOf(metadata, "azure")
}

// fitsOutput reports whether the package sends what a tool has returned.
func fitsOutput(output []byte, known *provider.Executed) bool {
	if known.List {
		return startsWith(output, '[')
	}
	return hasTexts(output, known.Output)
}

func startsWith(value []byte, c byte) bool { return len(value) > 0 && value[0] == c }

// hasTexts reports whether a value is an object in which all of the members are texts.
func hasTexts(value []byte, members []string) bool {
	return len(members) == 0 || startsWith(value, '{') && !slices.ContainsFunc(members, func(name string) bool {
		return stringLiteral(value, name) == nil
	})
}

// sends reports whether the package sends anything of a block that it does not refuse.
func (s sender) sends(p *Block) bool {
	switch p.Kind {
	case Text:
		return len(p.Text) > len(`""`)
	case Reasoning:
		return s.sendsThought(p)
	case Opaque:
		return !isAside(stringMember(p.Raw, "type"))
	}
	return true
}

// isAside reports whether no package sends a part of a type: a source, or the application's data.
func isAside(kind string) bool {
	return strings.HasPrefix(kind, "source-") || strings.HasPrefix(kind, "data-") || kind == stepStart
}

// sendsThought reports whether the package sends a thought: with what the provider keeps of it, or also without.
func (s sender) sendsThought(p *Block) bool {
	if s.SaysThoughts && p.Text != nil && !blank(p.Text) {
		return true
	}
	kept := keptFor(s.Package, reasoningMetadata(p))
	return slices.ContainsFunc(thoughtProofs, func(name string) bool { return stringLiteral(kept, name) != nil })
}

// thoughtProofs are the members of a thought's metadata that a provider wants back.
var thoughtProofs = []string{"signature", "redactedData", "thoughtSignature", "itemId", "reasoningEncryptedContent"}

// sendsNone reports whether the package sends nothing of what the assistant said.
func (s sender) sendsNone(n *Message) bool {
	return n.Role == Assistant && !slices.ContainsFunc(n.Blocks, func(p Block) bool { return s.sends(&p) })
}

// fitParts makes texts of the blocks that the provider behind the AI SDK, or its package, refuses.
func (r *repairer) fitParts(n *Message) {
	behind := sender{r.provider}
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if !behind.refuses(n.Role, p) {
			continue
		}
		if r.keepsFormat(n) {
			r.repaired("V-U10", "block_as_note", n, "a part that the provider's package does not send is a text")
		}
		n.makeText(p, substitute(p))
	}
}

// fitPackage changes what the package of the provider behind the AI SDK would drop, and leaves out assistant steps that
// the package would send empty.
func (r *repairer) fitPackage(list []Message) []Message {
	if r.target != session.AISDK || r.provider.Dialect == "" {
		return list
	}
	for i := range list {
		r.fitParts(&list[i])
	}
	behind := sender{r.provider}
	out := list[:0]
	for i := 0; i < len(list); {
		n := r.stepOf(list[i:])
		step := list[i : i+n]
		i += n
		if slices.ContainsFunc(step, func(n Message) bool { return !behind.sendsNone(&n) }) {
			out = append(out, step...)
			continue
		}
		for j := range step {
			r.repaired("V-U10", "empty_message", &step[j], "the provider's package sends nothing of it: it is left out")
		}
	}
	return out
}

// stepOf counts the Messages at the beginning of a list that are written as one step: what the assistant said in
// several messages of another format, or one Message.
func (r *repairer) stepOf(list []Message) int {
	joins := func(n *Message) bool { return n.Role == Assistant && !r.keepsFormat(n) }
	n := 1
	for joins(&list[0]) && n < len(list) && joins(&list[n]) {
		n++
	}
	return n
}

// uiSent checks V-U10.
func (c *checker) uiSent() {
	if c.server.Dialect == "" {
		return
	}
	behind := sender{c.server}
	for i, body := range c.bodies {
		for _, n := range Decode(c.format, body) {
			if behind.sendsNone(&n) {
				c.report(i, "the package sends nothing of the message")
			}
			for j := range n.Blocks {
				if p := &n.Blocks[j]; behind.refuses(n.Role, p) {
					c.report(i, "the package does not send the %s %.60s", p.Kind, p.Raw)
				}
			}
		}
	}
}
