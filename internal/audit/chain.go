package audit

import (
	"fmt"
	"strconv"
	"strings"
)

// Head is the last row of a chain: the zero Head is an empty one's. Whoever keeps it elsewhere can tell later that the
// chain still has all rows up to it as they were.
type Head struct {
	N    int64
	Hash Hash
}

// MarshalText writes a head as N:HASH.
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads a head as MarshalText writes it.
func (h *Head) UnmarshalText(text []byte) error {
	n, hash, _ := strings.Cut(string(text), ":")
	number, err := strconv.ParseInt(n, 10, 64)
	if err == nil {
		err = h.Hash.UnmarshalText([]byte(hash))
	}
	if err != nil || number < 0 {
		return fmt.Errorf("%.100q is no head of an audit trail: it must be like 42:9f86…, as varve audit verify "+
			"prints it", text)
	}
	h.N = number
	return nil
}

func (h Head) String() string { return strconv.FormatInt(h.N, 10) + ":" + h.Hash.String() }

// Break is where a chain is not as it was written.
type Break struct {
	N    int64  `json:"n"` // the row
	What string `json:"what"`
}

// Chain checks the rows of one audit trail, which come one after the other.
type Chain struct {
	Expected *Head // a row that it must have; nil for none

	first   Head
	last    Head
	gaps    []gap              // of which the row that explains them is still to come
	blanked map[int64]*blanked // by the row that must say so, which is still to come
}

// Behind returns the check of a chain's rows behind one that is known, the zero Head for all.
func Behind(known Head) *Chain { return &Chain{first: known, last: known} }

// First returns the row behind which the check began: a head that was kept, or the last row that was removed because
// its time was over. It is the zero Head for a trail that is there as a whole.
func (c *Chain) First() Head { return c.first }

// Page checks the rows of a page.
func (c *Chain) Page(p *Page) (found []Break) {
	for i := range p.Rows {
		found = append(found, c.Add(&p.Rows[i])...)
	}
	return found
}

// Add checks the next row. After a break the check continues from the row as it is, so that each is reported once.
func (c *Chain) Add(e *Entry) (found []Break) {
	wrong := func(format string, args ...any) { found = append(found, Break{e.N, fmt.Sprintf(format, args...)}) }
	switch {
	case e.N <= c.last.N:
		wrong("row %d is there again, behind row %d", e.N, c.last.N)
	case e.N > c.last.N+1:
		c.skip(e, &found)
	case e.Previous != c.last.Hash:
		wrong("row %d does not follow row %d as it is: one of them was changed, exchanged or put in", e.N, e.N-1)
	}
	switch {
	case e.Sum() != e.Hash, e.BlankedBy == nil && e.ContentSum() != e.Content:
		wrong("row %d was changed: its hash is not that of what it says", e.N)
	case e.BlankedBy != nil && *e.BlankedBy <= e.N:
		wrong("row %d was changed: a row before it cannot say that it was blanked", e.N)
	case e.BlankedBy != nil && (e.Detail != nil || e.Before != nil || e.After != nil):
		wrong("row %d was changed: it is said to be blanked, and has something to say", e.N)
	case e.BlankedBy != nil:
		c.blank(e)
	case e.Action == Prune:
		found = append(found, c.prune(e)...)
	}
	if what := c.unblanked(e); what != "" {
		wrong("%s", what)
	}
	c.reach(Head{e.N, e.Hash}, &found)
	return found
}

// reach notes the last row that is known, which must have the hash that is expected of it.
func (c *Chain) reach(last Head, found *[]Break) {
	c.last = last
	if want := c.Expected; want != nil && want.N == last.N && want.Hash != last.Hash {
		*found = append(*found, Break{last.N, fmt.Sprintf(
			"row %d has another hash than it had when its head was kept: the chain was written anew", last.N)})
	}
}

// End checks that the rows which were added are all that the chain has by its head.
func (c *Chain) End(head Head) (found []Break) {
	switch {
	case head.N > c.last.N:
		found = append(found, Break{c.last.N + 1, missing(c.last.N+1, head.N) + ", at the end"})
	case head.N < c.last.N:
		found = append(found, Break{head.N + 1, fmt.Sprintf("the chain ends with row %d, and its head is row %d: rows "+
			"were put in, or the head was changed", c.last.N, head.N)})
	case head.Hash != c.last.Hash:
		found = append(found, Break{head.N, fmt.Sprintf("the head of the chain has another hash than row %d", head.N)})
	}
	for n, rows := range c.blanked {
		found = append(found, Break{rows.first, fmt.Sprintf("row %d was blanked by row %d, which there is not",
			rows.first, n)})
	}
	for _, g := range c.gaps {
		found = append(found, Break{g.missing, missing(g.missing, g.last.N)})
	}
	if want := c.Expected; want != nil && want.N > c.last.N {
		found = append(found, Break{want.N, fmt.Sprintf("row %d was there when its head was kept, and the chain ends "+
			"with row %d", want.N, c.last.N)})
	}
	return found
}

func missing(first, last int64) string {
	if first == last {
		return fmt.Sprintf("row %d is missing", first)
	}
	return fmt.Sprintf("rows %d to %d are missing", first, last)
}
