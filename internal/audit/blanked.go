package audit

import (
	"encoding/json"
	"fmt"
)

// Blanked is the part of a row's detail that says which rows were blanked: the first, and how many.
type Blanked struct {
	First int64 `json:"blanked_from,omitempty"`
	Rows  int64 `json:"blanked,omitempty"`
}

// blanked are rows that were seen blanked.
type blanked struct {
	first, rows int64
	id          *string // of the session that those are about which are no forks
	differ      bool    // some have another
}

// blank takes in a blanked row, which is held to what the row says that blanked it.
func (c *Chain) blank(e *Entry) {
	if c.blanked == nil {
		c.blanked = map[int64]*blanked{}
	}
	rows := c.blanked[*e.BlankedBy]
	if rows == nil {
		rows = &blanked{first: e.N}
		c.blanked[*e.BlankedBy] = rows
	}
	rows.rows++
	if e.Object != Session || e.Action == SessionFork {
		return
	}
	if rows.id == nil {
		rows.id = e.ObjectID
	}
	rows.differ = rows.differ || e.ObjectID == nil || *e.ObjectID != *rows.id
}

// unblanked returns what is wrong with the rows that were seen blanked by a row, "" for nothing. Rows that were read
// before they were blanked, or are removed, were not seen so.
func (c *Chain) unblanked(e *Entry) string {
	rows := c.blanked[e.N]
	delete(c.blanked, e.N)
	if rows == nil {
		return ""
	}
	var said Blanked
	if e.BlankedBy == nil && len(e.Detail) > 0 {
		_ = json.Unmarshal(e.Detail, &said) // other rows' details say nothing of it
	}
	switch {
	case said.Rows < rows.rows || said.First > rows.first:
		return fmt.Sprintf("rows from %d on were blanked, and row %d does not say that of so many", rows.first, e.N)
	case rows.differ || rows.id != nil && (e.ObjectID == nil || *e.ObjectID != *rows.id):
		return fmt.Sprintf("rows from %d on were blanked by row %d, which is about another session", rows.first, e.N)
	}
	return ""
}
