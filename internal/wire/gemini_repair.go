package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

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
			p.Raw = without(p.Raw, signatureNames...)
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
	p := &n.Blocks[i]
	p.Signature = []byte(`"` + standIn + `"`)
	if p.Raw != nil && p.Format == session.Gemini {
		unsigned := without(p.Raw, signatureNames...)
		unsigned = unsigned[:len(unsigned)-1]
		p.Raw = wrap(unsigned, `,"thoughtSignature":`, p.Signature, "}")
	}
	n.Edited = true
	return true
}
