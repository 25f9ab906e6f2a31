package protocol

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// ImportState is the state of an import.
type ImportState string

// The states of an import.
const (
	ImportQueued    ImportState = "queued"  // it waits for its lines, or for the rest of them
	ImportRunning   ImportState = "running" // a request sends lines; if that was cut off, the next one takes over
	ImportSucceeded ImportState = "succeeded"
	ImportFailed    ImportState = "failed" // it held nothing that can be imported
)

// Ended reports whether the import takes no more lines.
func (s ImportState) Ended() bool { return s == ImportSucceeded || s == ImportFailed }

// Import is a file on its way into sessions, and what has become of its lines so far.
type Import struct {
	ID uuid.UUID `json:"id"`
	// `queued`: waits for more lines; `running`: a request sends lines; `failed`: contained nothing to import
	State      ImportState `json:"state"`
	Bytes      int64       `json:"bytes"`      // of the acknowledged lines
	Sessions   int64       `json:"sessions"`   // created
	Messages   int64       `json:"messages"`   // stored
	Duplicates int64       `json:"duplicates"` // messages that the log had already
	Rejected   int64       `json:"rejected"`   // lines
	// further findings in a file of another program; empty for an archive
	Report     json.RawMessage `json:"report" schema:"ImportFindings"`
	Error      *string         `json:"error"`
	Rejections []ImportedLine  `json:"rejections,omitzero"` // the first ones; lists omit them
	CreatedAt  time.Time       `json:"created_at"`
	UpdatedAt  time.Time       `json:"updated_at"`
	FinishedAt *time.Time      `json:"finished_at"`
	From       *string         `json:"from"`    // the kind of the lines; null until the first line is read
	Session    *string         `json:"session"` // the session that the caller named
	Progress   ImportProgress  `json:"progress"`
}

// ImportedLine is the recorded outcome of a line.
type ImportedLine struct {
	// counts the entries: a line of another program may contain several messages
	N       int64       `json:"n" schema:"minimum: 1"`
	Line    int64       `json:"line"` // in the file
	Outcome LineOutcome `json:"outcome"`
	Session *string     `json:"session"` // nil if the line names no session, or one that is erased
	Seq     *int64      `json:"seq"`
	Detail  string      `json:"detail,omitempty"`
}

// LineOutcome is the outcome of a line of an import.
type LineOutcome string

// The outcomes of lines.
const (
	LineCreated   LineOutcome = "created"   // a session was created, or the policy of the tenant
	LineExists    LineOutcome = "exists"    // the session exists and stays as it is
	LineStored    LineOutcome = "stored"    // a message was appended
	LineDuplicate LineOutcome = "duplicate" // the log has the message
	LineChecked   LineOutcome = "checked"   // it agrees with the lines before it
	LineSkipped   LineOutcome = "skipped"   // there is nothing to do for it
	LineRejected  LineOutcome = "rejected"
)

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
	Data    []ImportedLine `json:"data"`
	HasMore bool           `json:"has_more"`
	Next    *int64         `json:"next"` // the `from` of the next page; null at the end
}
