package audit

import (
	"encoding/json"
	"fmt"
	"slices"
)

// pruned is the detail of a row audit.prune: the last of the rows that were removed because their time was over.
type pruned struct {
	Through int64 `json:"through"`
	Hash    Hash  `json:"hash"`
}

// gap is rows that are not there. It is no break if a later row audit.prune says that all rows through its last one
// were removed, with the hash that the row behind the gap follows from.
type gap struct {
	first, missing int64 // missing is behind what other rows audit.prune say
	last           Head
	begins         bool  // no row is before it
	kept           int64 // the row of the head that was kept, if no row was read yet; 0 for none
}

// skip notes that the rows before a row, behind those that were read, are not there.
func (c *Chain) skip(e *Entry, found *[]Break) {
	g := gap{first: c.last.N + 1, missing: c.last.N + 1, last: Head{e.N - 1, e.Previous}}
	if c.last == c.first {
		g.begins, g.kept = true, c.first.N
	}
	c.gaps = append(c.gaps, g)
	c.reach(g.last, found)
}

// prune takes in a row audit.prune.
func (c *Chain) prune(e *Entry) (found []Break) {
	var said pruned
	if err := json.Unmarshal(e.Detail, &said); err != nil {
		return []Break{{e.N, fmt.Sprintf("row %d does not say which rows were removed", e.N)}}
	}
	wrong := func(n int64) {
		found = append(found, Break{n, fmt.Sprintf("what is behind row %d, of which the head was kept, cannot be "+
			"proved: the rows up to %d were removed because their time was over, keep a newer head", n, said.Through)})
	}
	c.gaps = slices.DeleteFunc(c.gaps, func(g gap) bool {
		if g.last.N != said.Through {
			return false
		}
		if g.last.Hash != said.Hash {
			found = append(found, Break{g.last.N + 1, fmt.Sprintf("row %d does not follow row %d with the hash that "+
				"row %d has of it: one of them was changed", g.last.N+1, g.last.N, e.N)})
		}
		if g.kept > 0 {
			wrong(g.kept)
		}
		if want := c.Expected; want != nil && want.N >= g.first && want.N < g.last.N {
			wrong(want.N)
		}
		if g.begins {
			c.first = g.last
		}
		return true
	})
	for i := range c.gaps {
		if g := &c.gaps[i]; said.Through < g.last.N {
			g.missing = max(g.missing, said.Through+1)
		}
	}
	return found
}
