package session

// MaxWholeMessages is how many messages an array may have that replaces those of a session.
const MaxWholeMessages = 10_000

// Replacement supersedes the messages of a session from one of them on, and appends others in their place, all or
// nothing. The superseded ones stay in the log, and are in no view.
type Replacement struct {
	Session     Address
	Seen        int64        // the last seq of the log that it was made for
	From        int64        // the seq of the first message that is superseded, 0 for none
	Appends     []Append     // in order; each has one format
	ExpectedSeq *int64       // the last seq that the caller has seen; nil does not check
	Idempotency *Idempotency // nil for none

	UsageIgnored string // what Replaced says of it
	Warnings     []Warning
}

// IsEmpty reports whether it changes nothing.
func (r *Replacement) IsEmpty() bool { return r.From == 0 && len(r.Appends) == 0 }

// Replaced is the answer to a replacement.
type Replaced struct {
	Superseded int64 `json:"superseded"` // how many messages were superseded
	Appended   int64 `json:"appended"`   // how many messages were appended
	// of the first appended message; null if there is none
	FirstSeq *int64 `json:"first_seq" schema:"minimum: 1"`
	LastSeq  int64  `json:"last_seq"`               // of the session
	Tokens   int64  `json:"tokens" schema:"Tokens"` // estimated tokens of the appended messages
	// estimated tokens of the view after it
	ContextTokens int64      `json:"context_tokens" schema:"Tokens"`
	TotalTokens   int64      `json:"total_tokens" schema:"Tokens"` // of the log after them
	Compaction    Compaction `json:"compaction"`                   // whether a compaction was queued
	// why the usage that was reported is not used; absent if it is, or if none was
	UsageIgnored string `json:"usage_ignored,omitempty"`
	// what views will repair of the new messages, or leave out; absent for nothing
	Warnings []Warning `json:"warnings,omitempty"`
}

// Outline is what a log has in its views, without bodies.
type Outline struct {
	Key     Key
	Format  Format // "" if the session has none yet
	LastSeq int64
	Entries []Entry
}

// Entry is a message of an Outline.
type Entry struct {
	Seq      int64
	Format   Format
	ClientID string // "" for none
	Bytes    int64  // of the body
	Digest   []byte // SHA-256 of the body; nil if it is known only with the body
}
