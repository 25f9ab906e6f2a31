// Package session says what a session is: its messages, formats, limits, references and the errors that every
// other package reports. It does no I/O and imports nothing of ours.
//
// Start at Session and Append; errors.go lists what can go wrong, limits.go how large things may be.
package session

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Address names a session the way its caller does: a tenant and the id that the tenant chose.
type Address struct {
	Tenant uuid.UUID
	ID     string
}

// Key names a session the way the database does. Key is made by Varve, is never reused, and is never shown to callers.
type Key struct {
	Tenant uuid.UUID
	Key    uuid.UUID
}

// Session is one conversation: an append-only log of messages and what is known of its size.
type Session struct {
	Address
	Key            uuid.UUID
	Format         Format // "" until the first append or PUT names one
	Model          string
	WindowTokens   int // the model's context window
	OverheadTokens int // tokens that the caller sends besides the messages: tool definitions and the like
	Metadata       json.RawMessage
	LastSeq        int64
	ContextTokens  int64 // estimated tokens of the view, overhead aside
	TotalTokens    int64 // estimated tokens of the whole log
	Checkpoint     int   // number of the newest checkpoint, 0 for none
	CreatedAt      time.Time
	LastAppendAt   *time.Time
}

// Message is one entry of the log.
type Message struct {
	Seq       int64
	Role      string
	Format    Format
	Tokens    int
	ClientID  string // "" for none
	Body      []byte // the exact bytes that came in
	CreatedAt time.Time
}

// New is one message on its way into the log: its bytes and what was read from them, once, when it came in.
type New struct {
	Body       []byte
	Role       string
	Tokens     int
	ClientID   string   // "" for none
	Calls      []string // ids of the tool calls it makes
	Answers    []string // ids of the tool calls it answers
	StartsUnit bool     // false for a message that only answers calls
	Flags      int32    // wire.Flag bits
}

// Append is a request to add messages to the end of a session, all or none.
type Append struct {
	Session     Address
	Format      Format
	Messages    []New
	ExpectedSeq *int64       // the last seq that the caller has seen; nil does not check
	Idempotency *Idempotency // nil for none
}

// Appended is what an append did.
type Appended struct {
	FirstSeq      int64      `json:"first_seq"`
	LastSeq       int64      `json:"last_seq"`
	Tokens        int64      `json:"tokens"`         // estimated tokens of these messages
	ContextTokens int64      `json:"context_tokens"` // estimated tokens of the view after them
	TotalTokens   int64      `json:"total_tokens"`
	Compaction    Compaction `json:"compaction"`
	Replayed      bool       `json:"replayed"`
}

// Compaction says what an append did about compaction.
type Compaction string

// The three answers: the session is not due, a job was inserted, or one was live already.
const (
	CompactionNone   Compaction = "none"
	CompactionQueued Compaction = "queued"
	CompactionLive   Compaction = "already_queued"
)

// Idempotency is a caller's Idempotency-Key with the fingerprint of the request that came with it.
type Idempotency struct {
	Key    string
	Route  string
	Digest [32]byte // SHA-256 of method, path, sorted query and body
}
