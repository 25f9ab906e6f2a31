package wire

import (
	"slices"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// mend changes what stands in a message of the target's own format and is refused there wherever it stands. Names that
// are too long come from other formats, too.
func (r *repairer) mend(n *Message) {
	if r.provider.NameMax > 0 {
		r.mendName(n)
	}
	if n.Format != r.target || n.Raw == nil {
		return
	}
	switch r.target {
	case session.Gemini:
		r.mendContent(n)
	case session.Anthropic:
		r.mendCompaction(n)
	case session.OpenAIChat:
		if n.flags&FlagEmptyArray != 0 && n.Role == Assistant && n.has(Call) {
			n.Edited = true
			r.repaired("V-C3", "content_null", n, "content is null, not an array without parts")
		}
	}
}

// isMendable reports whether mend may have something to do.
func (s *scanner) isMendable(f session.Format, rules *provider.Facts) bool {
	for i := range s.facts.Parts {
		p := &s.facts.Parts[i]
		raw := p.Raw.Of(s.body)
		mendable := false
		switch f {
		case session.Gemini:
			mendable = faultOf(raw) != sound || p.Kind == Call && signatureOf(raw) == standIn
		case session.Anthropic:
			mendable = p.Kind == Opaque && emptyCompaction(raw)
		case session.OpenAIResponses:
			longName := p.Kind == Call && utf8.RuneCountInString(p.Name) > rules.NameMax
			mendable = longName || p.Kind == Reasoning && byID(raw)
		}
		if mendable {
			return true
		}
	}
	return false
}

// fault is what is wrong with a part of a Gemini content.
type fault uint8

const (
	sound   fault = iota
	noData        // it has nothing to say
	badCall       // it is a call or a response without a name, or whose arguments or response are no object
	notOne        // it is no object itself, or has several kinds of data
)

func faultOf(part []byte) fault {
	if len(part) == 0 || part[0] != '{' {
		return notOne
	}
	data, unknown := partCount(part, func(name string) bool { return slices.Contains(partData, name) })
	switch {
	case data > 1:
		return notOne
	case data+unknown == 0:
		return noData
	}
	for key, value := range rawjson.Members(part, 0) {
		if badFunction(key.Of(part), value.Of(part)) != "" {
			return badCall
		}
	}
	return sound
}

func (r *repairer) mendContent(n *Message) {
	if role := stringMember(n.Raw, "role"); role == "assistant" || role == "function" {
		n.Edited = true
		r.repaired("V-G4", "role_renamed", n, "the API calls the role %s otherwise", role)
	}
	if at := member(n.Raw, "parts"); at != (Span{}) && n.Raw[at.Start] != '[' {
		n.Edited = true
		r.repaired("V-G4", "part_mended", n, "parts is a list")
	}
	pieces := make([]Block, 0, len(n.Blocks))
	called := false
	for _, p := range n.Blocks {
		wrong := sound
		if p.Raw != nil {
			wrong = faultOf(p.Raw)
		}
		switch {
		case wrong == badCall:
			p.Edited = true
		case wrong == notOne:
			p = Block{Kind: Text, Text: substitute(&Block{Kind: Opaque, Raw: p.Raw}), Edited: true}
		case p.Kind == Call && called && string(unquotedName(p.Signature)) == standIn:
			p.Signature = nil
			p.Raw = withoutSignature(p.Raw)
			n.Edited = true
			r.repaired("V-G3", "signature_dropped", n,
				"only the first call of a content may say that it has no signature")
		}
		if called = called || p.Kind == Call; wrong != noData {
			pieces = append(pieces, p)
		}
		if wrong != sound {
			n.Edited = true
			r.repaired("V-G4", "part_mended", n, "a part is none that the API takes")
		}
	}
	n.Blocks = pieces
}

// withoutSignature returns a part of a Gemini content without its signature.
func withoutSignature(part []byte) []byte {
	s := scanner{body: part}
	others := s.others(0, []string{"thoughtSignature", "thought_signature"})
	return wrap(nil, "{", others, "}")
}

// mendCompaction makes null of the content "" of a compaction: both say that there is no summary.
func (r *repairer) mendCompaction(n *Message) {
	for i := range n.Blocks {
		if raw := n.Blocks[i].Raw; n.Blocks[i].Kind == Opaque && emptyCompaction(raw) {
			n.Blocks = slices.Clone(n.Blocks)
			n.Blocks[i].Raw = Replace(nil, raw, []Edit{{Span: member(raw, "content"), With: []byte("null")}})
			n.Edited = true
			r.repaired("V-A10", "compaction_null", n, "the content of a compaction is null, not empty")
		}
	}
}

func emptyCompaction(block []byte) bool {
	return isType(block, "compaction") && string(valueOf(block, "content")) == `""`
}

// isSigned reports whether the value of a signature, or of its replacement, is a text.
func isSigned(value []byte) bool { return len(value) > len(`""`) && value[0] == '"' }

// mendName cuts the names of tools that are too long.
func (r *repairer) mendName(n *Message) {
	max := r.provider.NameMax
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if p.Kind != Call || utf8.RuneCount(unquotedName(p.Name)) <= max {
			continue
		}
		n.Blocks = slices.Clone(n.Blocks)
		p = &n.Blocks[i]
		p.Name = rawjson.Quote(nil, []byte(string([]rune(string(unquoted(p.Name)))[:max])))
		p.Edited, n.Edited = true, true
		r.repaired("V-R4", "name_cut", n, "the name of a tool has at most %d characters", max)
	}
}

// marksIn counts the marks for the provider's cache in a block and in the blocks inside it. empty says that one of them
// is on an empty text.
func marksIn(block []byte) (marks int, empty bool) {
	count := func(marked []byte) bool {
		marks++
		empty = empty || string(valueOf(marked, "text")) == `""`
		return true
	}
	if member(block, "cache_control") != (Span{}) {
		count(block)
	}
	markedBlocks(block, count)
	return marks, empty
}

// unmarked returns a block without marks, and without those in the blocks of its content.
func unmarked(block []byte) []byte {
	block = without(block, "cache_control")
	content := member(block, "content")
	if content == (Span{}) || block[content.Start] != '[' {
		return block
	}
	var edits []Edit
	for at := range rawjson.Elements(block, content.Start) {
		if inner := at.Of(block); member(inner, "cache_control") != (Span{}) {
			edits = append(edits, Edit{Span: at, With: without(inner, "cache_control")})
		}
	}
	return Replace(nil, block, edits)
}
