package session

import (
	"encoding/json"
	"time"
)

// ImportedMessage is a message of another log, which is stored with its seq, its times and its removal.
type ImportedMessage struct {
	Seq        int64
	CreatedAt  *time.Time // nil takes the time of the import
	RemovedAt  *time.Time // with RemovedSeq: the message is in no view
	RemovedSeq int64
	// SupersededBy is the seq of the message that has its client id now, RemovedSeq if none has; 0 if it was not
	// superseded.
	SupersededBy int64
	NewMessage
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
	LeftOut        bool            `json:"-"` // a search does not want it: it is only a place in the list
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
