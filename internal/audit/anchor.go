package audit

import (
	"encoding/json"
	"fmt"
)

// Anchor is where a trail begins whose older rows were removed because their time was over.
type Anchor struct {
	N         int64  `json:"n"`          // the last row that was removed
	Hash      Hash   `json:"hash"`       // of that row
	RemovedBy int64  `json:"removed_by"` // the row that says so
	Blanked   []Stub `json:"blanked,omitempty"`
}

// Stub is what is left of a row that was removed blanked, as long as the row that blanked it is there.
type Stub struct {
	N         int64 `json:"n"`
	BlankedBy int64 `json:"blanked_by"`
	Sum       Hash  `json:"sum"` // of the row as it was
}

// pruned is the detail of a row that says what was removed.
type pruned struct {
	Through int64 `json:"through"`
	Hash    Hash  `json:"hash"`
}

// saidBy reports whether a row says that the rows up to the anchor were removed.
func (a *Anchor) saidBy(e *Entry) bool {
	var said pruned
	err := json.Unmarshal(e.Detail, &said)
	return err == nil && e.Action == Prune && said == pruned{a.N, a.Hash}
}

// Begin takes in that the next row is the one behind an anchor. Where the trail becomes shorter while it is read, that
// may be behind rows that were added.
func (c *Chain) Begin(a *Anchor) (found []Break) {
	wrong := func(n int64, format string, args ...any) {
		found = append(found, Break{n, fmt.Sprintf(format, args...)})
	}
	if a.N <= c.last.N {
		wrong(a.N, "the rows up to %d are said to be removed behind row %d", a.N, c.last.N)
		return found
	}
	const gone = "what is behind row %d, of which the head was kept, cannot be proved: the rows up to %d were " +
		"removed because their time was over, keep a newer head"
	if c.last == c.first && c.first.N > 0 {
		wrong(c.first.N, gone, c.first.N, a.N)
	}
	if want := c.Expected; want != nil && want.N > c.last.N && want.N < a.N {
		wrong(want.N, gone, want.N, a.N)
	}
	if c.last == c.first {
		c.first = Head{a.N, a.Hash}
	}
	c.reach(Head{a.N, a.Hash}, &found)
	c.anchor = a
	c.known, c.blanked = 0, nil // of all blanked rows that were removed there is a stub
	for _, s := range a.Blanked {
		c.blank(s.N, s.BlankedBy, s.Sum)
	}
	return found
}

// anchored checks the row that must say what was removed.
func (c *Chain) anchored(e *Entry) string {
	a := c.anchor
	if a == nil || e.N != a.RemovedBy {
		return ""
	}
	c.anchor = nil
	if a.saidBy(e) {
		return ""
	}
	return fmt.Sprintf("row %d does not say that the rows up to %d were removed as the beginning of the trail has it: "+
		"somebody else removed them, or the beginning was changed", e.N, a.N)
}
