package protocol

import (
	"github.com/varve-dev/varve/internal/session"
)

// Import is a file on its way into sessions, and what has become of its lines so far.
type Import struct {
	session.Import
	From     *string        `json:"from"`    // the kind of the lines; null until the first line is read
	Session  *string        `json:"session"` // the session that the caller named
	Progress ImportProgress `json:"progress"`
}

// ImportReport is what a file of another source holds besides messages.
type ImportReport struct {
	// records: the values on the lines, or the messages of a document
	Lines   int            `json:"lines"`
	Skipped map[string]int `json:"skipped" schema:"type: [object, 'null']"` // those that are not conversation, by kind
	Notes   []ImportNote   `json:"notes"`
}

// ImportNote is something odd about a line that was imported all the same.
type ImportNote struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// ImportProgress counts an import's lines. Total is known at the end, or from the start if the file was read whole.
type ImportProgress struct {
	Done  int64  `json:"done"`
	Total *int64 `json:"total"` // null until the number is known
	Unit  string `json:"unit" schema:"const: lines"`
}

// ImportLines is a page of the lines of an import. Next is null on the last page.
type ImportLines struct {
	Data    []session.ImportedLine `json:"data"`
	HasMore bool                   `json:"has_more"`
	Next    *int64                 `json:"next"` // the `from` of the next page; null at the end
}
