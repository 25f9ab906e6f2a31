package session

import (
	"encoding/json"
	"fmt"
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

// Import is a file of conversations that is being written into a tenant's sessions.
type Import struct {
	ID uuid.UUID `json:"id"`
	// `queued`: waits for more lines; `running`: a request sends lines; `failed`: contained nothing to import
	State      ImportState `json:"state"`
	Wanted     string      `json:"-"`          // the source that the caller named, "" for none
	Source     string      `json:"-"`          // what the first line was recognised as, "" before that
	Session    string      `json:"-"`          // the session id that the caller named for the content, "" for none
	Attempt    int         `json:"-"`          // counts the requests that sent lines
	Done       int64       `json:"-"`          // acknowledged lines
	Total      *int64      `json:"-"`          // all lines, nil if unknown
	Bytes      int64       `json:"bytes"`      // of the acknowledged lines
	Digest     []byte      `json:"-"`          // of the acknowledged lines, in the caller's encoding
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
}

// ImportedRange selects lines of an import: those from From on, only of an Outcome unless that is "".
type ImportedRange struct {
	From    int64
	Outcome LineOutcome
	Limit   int
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

// MaxImportLines is the largest number of lines of an import that one transaction stores.
const MaxImportLines = 1000

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

// ImportLine is a line of an import: a session, a message, the end of a session, or a line whose outcome is known
// already.
type ImportLine struct {
	Line    int64 // in the file
	Session *ImportedSession
	Message *ImportedMessage
	End     *ImportedEnd
	Outcome LineOutcome
	Detail  string
	More    int64 // how many lines after it have the same outcome, and nothing else: empty ones
}

// Set records the line's outcome.
func (l *ImportLine) Set(outcome LineOutcome, detail string, args ...any) {
	l.Outcome, l.Detail = outcome, fmt.Sprintf(detail, args...)
}

// ImportedSession is a session that a line creates, unless one with this id exists.
type ImportedSession struct {
	ID        string
	Change    Change
	Tokens    *TokenHistory
	CreatedAt *time.Time // nil takes the time of the import
}

// ImportedMessage is a message that a line brings. With a Seq it is stored there, or compared with the message that is
// there; without one it is appended.
type ImportedMessage struct {
	Session    string
	Format     Format
	Seq        int64
	CreatedAt  *time.Time // nil takes the time of the import
	RemovedAt  *time.Time // with RemovedSeq: the message is in no view
	RemovedSeq int64
	// SupersededBy is the seq of the message that has its client id now, RemovedSeq if none has; 0 if it was not
	// superseded.
	SupersededBy int64
	// After is the client id of the message before it in its file, "" for the first; nil if it may be appended
	// anywhere.
	After *string
	NewMessage
}

// ImportedEnd is the line after a session's messages. A removal takes a seq without a message, so LastSeq may be larger
// than the seq of the last one.
type ImportedEnd struct {
	Session string        `json:"session"`
	LastSeq int64         `json:"last_seq"`
	Pins    []ArchivedPin `json:"pins"`
}

// ArchivedPin is what a caller has pinned of a session in an archive. Its text is that of the message.
type ArchivedPin struct {
	Ref       string    `json:"ref"`
	Note      string    `json:"note,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	SHA256    string    `json:"sha256"` // of the message's body, in hexadecimal
}

// Exported is a session as it was at one moment: its settings, and how long its log was. What was appended or removed
// later has larger seqs than LastSeq, so pages that are read afterwards show that moment as well. What is derived from
// the log is not part of it: token counts, checkpoints, results.
type Exported struct {
	Key            Key             `json:"-"`
	LastSeq        int64           `json:"-"`
	ID             string          `json:"id"`
	Format         Format          `json:"format,omitempty"`
	Model          string          `json:"model"`
	WindowTokens   int             `json:"window_tokens"`
	WindowSource   WindowSource    `json:"window_source"`
	OverheadTokens int             `json:"overhead_tokens"`
	Metadata       json.RawMessage `json:"metadata"`
	Policy         json.RawMessage `json:"policy,omitempty"` // the session's own layer
	Tokens         *TokenHistory   `json:"usage,omitempty"`  // nil if nothing was ever reported or counted
	CreatedAt      time.Time       `json:"created_at"`
}

// TokenHistory is what a session has learned about how its provider counts tokens.
type TokenHistory struct {
	Calibration float32 `json:"calibration"`
	Unseen      int64   `json:"unseen_tokens,omitempty"`
	Last        *Usage  `json:"last,omitempty"`
	Counted     int64   `json:"counted_tokens,omitempty"` // estimated, of the messages that were counted exactly
	Exact       int64   `json:"exact_tokens,omitempty"`
}
