package wire

import (
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// UserMessage returns a message of the user that says a text, which is a string literal.
func UserMessage(f session.Format, literal []byte) []byte {
	said := Message{Role: User, Blocks: []Block{{Kind: Text, Text: literal}}, Edited: true}
	return Encode(f, []Message{said})[0]
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
// (the forms of OpenAI's calls), late and idle (thoughts that stand where they may not), seal (signatures), rename
// (ids), unmark (cache marks), ends (first and last role).
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
