// Package manifest reads loss manifests: what checkpoints took out of a session's view, and the refs that bring it
// back.
//
// Start at Merge, which makes one manifest of those of a checkpoint and all that it builds on, and at Compare
// (diff.go), which returns what differs between two. A manifest is stored as JSON for ever, so this package reads what
// any version of the engine wrote. For every manifest, stored or merged, Saved is the tokens that the messages had
// before, less those that the view has after it. The package is pure and owns no table.
package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Entry is one thing that left the view: a part of a message, or whole messages.
type Entry struct {
	Seq     int64 `json:"seq" schema:"minimum: 1"`
	LastSeq int64 `json:"last_seq" schema:"minimum: 1"` // of messages the last one, else seq
	Part    int   `json:"part" schema:"minimum: -1"`    // below 0: messages as a whole
	// of the last message of a range only the first steps left, the others stay
	Partial      bool   `json:"partial,omitempty"`
	Tool         string `json:"tool,omitempty"`
	Category     string `json:"category,omitempty"` // what the tool does, e.g. file_read
	Do           string `json:"do" schema:"Do"`
	Stage        string `json:"stage"`
	Rule         string `json:"rule,omitempty"` // the field of the policy that decided
	Reason       string `json:"reason"`
	TokensBefore int64  `json:"tokens_before"`
	TokensAfter  int64  `json:"tokens_after"`
	// of a part its text, of a range its messages; older engines wrote none
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
	// of a superseded result: tool:primary[:secondary], secrets masked
	Resource string `json:"resource,omitempty"`
	// of the complete result; if absent, the message is in the log under its seq
	Ref string `json:"ref,omitempty"`
	// of a result that is the capped text of an upload, or a window that was read back: the ref of the original,
	// with its lines (`r17.1-9f3a lines 200-399`)
	Source string `json:"source,omitempty"`
}

// Manifest is what left the view, by seq and part.
type Manifest []Entry

// Parse reads the stored manifests of a checkpoint and of those that it builds on.
func Parse(stored []json.RawMessage) ([]Manifest, error) {
	list := make([]Manifest, len(stored))
	for i, document := range stored {
		if err := json.Unmarshal(document, &list[i]); err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		for k := range list[i] {
			e := &list[i][k]
			e.LastSeq = max(e.Seq, e.LastSeq) // the first version of the engine wrote none
		}
	}
	return list, nil
}

// Saved returns how many fewer tokens the view has.
func (m Manifest) Saved() (tokens int64) {
	for i := range m {
		tokens += m[i].saved()
	}
	return tokens
}

func (e *Entry) saved() int64 { return e.TokensBefore - e.TokensAfter }

// whole reports whether the entry is about messages and not about one part.
func (e *Entry) whole() bool { return e.Part < 0 || e.LastSeq > e.Seq }

// covers reports whether e includes everything that other is about. If only some steps of a message have left, their
// parts keep entries of their own until the rest leaves.
func (e *Entry) covers(other *Entry) bool {
	separate := e.Partial && other.LastSeq == e.LastSeq && !(other.whole() && other.Partial)
	return e.whole() && e.Seq <= other.Seq && other.LastSeq <= e.LastSeq && !separate
}

// key distinguishes the entries of one manifest.
type key struct {
	seq, end int64
	part     int
}

func (e *Entry) key() key {
	if e.whole() {
		return key{e.Seq, e.LastSeq, -1}
	}
	return key{e.Seq, e.Seq, e.Part}
}

// Merge returns everything that is not whole in the view of a checkpoint, given its manifest and those of the
// checkpoints that it builds on, newest first. Each entry is the newest about its part, with the part's original
// tokens; the entry about messages that have left since includes those about their parts.
func Merge(newestFirst []Manifest) Manifest {
	merged := map[key]Entry{}
	for _, m := range slices.Backward(newestFirst) {
		for _, e := range partsFirst(m) {
			older := merged[e.key()]
			e.add(&older)
			delete(merged, e.key())
			if e.whole() {
				absorb(merged, &e)
			}
			merged[e.key()] = e
		}
	}
	list := make(Manifest, 0, len(merged))
	for _, e := range merged {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(b.LastSeq, a.LastSeq), cmp.Compare(a.Part, b.Part))
	})
	return list
}

// partsFirst returns a manifest with the entries about whole messages after those about parts, which may be theirs.
func partsFirst(m Manifest) Manifest {
	m = slices.Clone(m)
	slices.SortStableFunc(m, func(a, b Entry) int {
		switch {
		case a.whole() == b.whole():
			return 0
		case b.whole():
			return -1
		}
		return 1
	})
	return m
}

// add adds what an older entry has saved.
func (e *Entry) add(older *Entry) {
	e.TokensBefore += older.saved()
	e.BytesBefore += older.BytesBefore - older.BytesAfter
}

// absorb removes the entries that e covers and adds what they had saved.
func absorb(merged map[key]Entry, e *Entry) {
	for k, other := range merged {
		if e.covers(&other) {
			e.add(&other)
			delete(merged, k)
		}
	}
}

// StageSum is what one stage took out of the view.
type StageSum struct {
	Stage       string `json:"stage"`
	Entries     int    `json:"entries"`
	TokensSaved int64  `json:"tokens_saved"`
}

// Stages sums a manifest up by stage, in the order in which the stages first come.
func (m Manifest) Stages() []StageSum {
	sums := []StageSum{}
	for i := range m {
		at := slices.IndexFunc(sums, func(s StageSum) bool { return s.Stage == m[i].Stage })
		if at < 0 {
			at = len(sums)
			sums = append(sums, StageSum{Stage: m[i].Stage})
		}
		sums[at].Entries++
		sums[at].TokensSaved += m[i].saved()
	}
	return sums
}
