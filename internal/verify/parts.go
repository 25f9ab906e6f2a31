package verify

import (
	"crypto/sha256"
	"iter"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// namedPart is a part of a message of the log under a name.
type namedPart struct {
	*wire.Part
	ref     session.ResultRef
	sum     [32]byte
	content wire.Content
}

// partsOf yields the parts of a message under their names, and then under those that engines before version 7 gave the
// parts of a message of another format than its session's, f: such names hold for ever. found, if it is not nil, are
// the facts of the message.
func partsOf(f session.Format, m *postgres.AuditedMessage, found *wire.Facts) iter.Seq[namedPart] {
	return func(yield func(namedPart) bool) {
		if found == nil {
			facts, err := wire.Inspect(m.Format, m.Body)
			if err != nil {
				return
			}
			found = &facts
		}
		if !yieldParts(m.Format, m.Body, found, session.ResultRef{Seq: m.Seq}, yield) || m.Format == f {
			return
		}
		before := session.ResultRef{Seq: m.Seq} // how many parts the bodies before have
		for _, t := range wire.TranslateMessage(f, wire.Stored{Format: m.Format, Body: m.Body, Seq: m.Seq}) {
			facts, err := wire.Inspect(f, t.Body)
			if err == nil && !yieldParts(f, t.Body, &facts, before, yield) {
				return
			}
			before.Part += max(len(facts.Parts), 1)
		}
	}
}

// yieldParts yields the parts of a body, whose first one is at first.
func yieldParts(
	f session.Format, body []byte, found *wire.Facts, first session.ResultRef, yield func(namedPart) bool,
) bool {
	for i := range found.Parts {
		p := namedPart{Part: &found.Parts[i]}
		p.content = wire.ResultText(f, body, *p.Part)
		p.sum = sha256.Sum256(p.content.Stored)
		p.ref = session.NewResultRef(first.Seq, first.Part+p.Index, p.sum)
		if !yield(p) {
			return false
		}
	}
	return true
}
