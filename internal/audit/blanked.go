package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
)

// Blanked is the part of a row's detail that says which rows were blanked: the first, how many, and the SHA-256 of
// their Sums as they are now, in hexadecimal digits.
type Blanked struct {
	First  int64  `json:"blanked_from,omitempty"`
	Rows   int64  `json:"blanked,omitempty"`
	SHA256 string `json:"blanked_sha256,omitempty"`
}

// blanked are rows that were seen blanked.
type blanked struct {
	first, rows int64
	sum         hash.Hash
}

// blank takes in a blanked row, with the hash of what it says now: it is held to what the row says that blanked it.
func (c *Chain) blank(n, by int64, sum Hash) {
	if c.blanked == nil {
		c.blanked = map[int64]*blanked{}
	}
	rows := c.blanked[by]
	if rows == nil {
		rows = &blanked{first: n, sum: sha256.New()}
		c.blanked[by] = rows
	}
	rows.add(sum)
}

// unblanked returns what is wrong with the rows that a row says it has blanked, "" for nothing. Rows from before the
// check began are not known.
func (c *Chain) unblanked(e *Entry) string {
	rows := c.allBlanked(e.N)
	said := e.blanks()
	switch {
	case rows == nil && said.Rows > 0 && said.First > c.known:
		return fmt.Sprintf("row %d says that it has blanked %d rows, and there are none", e.N, said.Rows)
	case rows == nil || said.Rows > 0 && said.First <= c.known:
		return ""
	case rows.rows != said.Rows || hex.EncodeToString(rows.sum.Sum(nil)) != said.SHA256:
		return fmt.Sprintf("rows from %d on were blanked that row %d does not name so: one of them was changed",
			rows.first, e.N)
	}
	return ""
}

// blanks returns what a row says that it has blanked.
func (e *Entry) blanks() (said Blanked) {
	if e.BlankedBy == nil && len(e.Detail) > 0 {
		_ = json.Unmarshal(e.Detail, &said) // other rows' details say nothing of it
	}
	return said
}
