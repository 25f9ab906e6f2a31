package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

func (r *repairer) mendContent(n *Message) {
	if role := stringMember(n.Raw, "role"); role == "assistant" || role == "function" {
		n.Edited = true
		r.repaired("V-G4", "role_renamed", n, "the API has another name for the role %s", role)
	}
	if at := member(n.Raw, "parts"); at != (Span{}) && n.Raw[at.Start] != '[' {
		n.Edited = true
		r.repaired("V-G4", "part_mended", n, "parts must be an array")
	}
	blocks := make([]Block, 0, len(n.Blocks))
	called := false
	for _, p := range n.Blocks {
		wrong := noFault
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
				"only the first call of a content may have the stand-in for a signature")
		}
		if called = called || p.Kind == Call; wrong != noData {
			blocks = append(blocks, p)
		}
		if wrong == noFault {
			continue
		}
		n.Edited = true
		told := func(repair Repair) bool { return repair.Kind == "part_mended" && repair.Seq == r.view[n.Origin].Seq }
		if !slices.ContainsFunc(r.repairs, told) { // by decode, or for another part
			r.repaired("V-G4", "part_mended", n, "a part is rewritten: the API does not take it as it was")
		}
	}
	n.Blocks = blocks
}

// sign gives the first call of each step of the current turn a signature, if it has none. Steps of earlier turns keep
// the signature that they had when their turn was the current one, so that the beginning of the view stays as the
// provider has cached it. Google does not check those, so messages of the target's own format stay as they are.
func (r *repairer) sign(list []Message) {
	rule := map[bool]string{true: "V-D10", false: "V-G3"}[r.provider.SignsCalls]
	if r.target != session.Gemini && !r.provider.SignsCalls || provider.IsOlderGemini(r.Model) {
		return
	}
	current := true
	for i := len(list) - 1; i >= 0; i-- {
		n := &list[i]
		current = current && n.Role != User
		if n.Role == Assistant && (current || n.Format != r.target) && n.signFirst() {
			r.repaired(rule, "signature_skipped", n,
				"the first call came without a signature: it has the stand-in for one")
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
	switch {
	case p.Raw == nil:
	case p.Format == session.Gemini:
		unsigned := without(p.Raw, signatureNames...)
		unsigned = unsigned[:len(unsigned)-1]
		p.Raw = wrap(unsigned, `,"thoughtSignature":`, p.Signature, "}")
	case p.Format == session.OpenAIChat:
		p.Raw = setMember(p.Raw, "extra_content", googleContent(p))
	}
	n.Edited = true
	return true
}
