package protocol

import (
	"github.com/varve-dev/varve/internal/session"
)

// Import is a file on its way into sessions, and what has become of its lines so far.
type Import struct {
	session.Import
	From     *string        `json:"from"`    // what the lines are; null until the first one shows it
	Session  *string        `json:"session"` // that the caller named
	Progress ImportProgress `json:"progress"`
}

// ImportReport is what a file of another source holds besides messages.
type ImportReport struct {
	Lines   int            `json:"lines"`   // records: the values on the lines, or the messages of a document
	Skipped map[string]int `json:"skipped"` // those that are not conversation, by kind
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
	Total *int64 `json:"total"`
	Unit  string `json:"unit"`
}

// ImportLines is a page of the lines of an import. Next is null on the last page.
type ImportLines struct {
	Data    []session.ImportedLine `json:"data"`
	HasMore bool                   `json:"has_more"`
	Next    *int64                 `json:"next"`
}
