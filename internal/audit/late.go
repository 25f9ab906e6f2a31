package audit

import (
	"bytes"
	"crypto/sha256"
)

// Late has, in their order, all rows that some rows have blanked which were written while the trail was read: what a
// row of a page before was, when it was read, is not what the row that blanked it names.
type Late []Stub

// takeLate notes what rows that come next have blanked.
func (c *Chain) takeLate(late Late) {
	for _, s := range late {
		if c.late == nil {
			c.late = map[int64]Late{}
		}
		c.late[s.BlankedBy] = append(c.late[s.BlankedBy], s)
	}
}

// allBlanked returns the rows that a row has blanked, which the check is behind now: those that were seen blanked, or
// all if some were read before that and the others are as they were seen.
func (c *Chain) allBlanked(by int64) *blanked {
	seen, late := c.blanked[by], c.late[by]
	delete(c.blanked, by)
	delete(c.late, by)
	if late == nil || !seen.agrees(late) {
		return seen
	}
	all := &blanked{first: late[0].N, sum: sha256.New()}
	for _, s := range late {
		all.add(s.Sum)
	}
	return all
}

// add takes in the next row.
func (b *blanked) add(sum Hash) {
	b.rows++
	b.sum.Write(sum[:])
}

// agrees reports whether the rows that were seen blanked are the last of those that were blanked; none are.
func (b *blanked) agrees(all Late) bool {
	if b == nil {
		return true
	}
	last := &blanked{sum: sha256.New()}
	for _, s := range all {
		if s.N >= b.first {
			last.add(s.Sum)
		}
	}
	return last.rows == b.rows && bytes.Equal(last.sum.Sum(nil), b.sum.Sum(nil))
}

// Blanks returns the first row that an entry says it has blanked; 0 if it says nothing of the kind.
func (e *Entry) Blanks() int64 {
	if said := e.blanks(); said.Rows > 0 {
		return said.First
	}
	return 0
}
