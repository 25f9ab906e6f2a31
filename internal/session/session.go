// Package session holds the types of the domain: a session with its messages, formats, checkpoints and runs; imports,
// exports and recompactions; the limits of all of them, and the errors that every other package reports. It does no I/O
// and imports no other package of Varve.
//
// Start at Session and Append; errors.go lists the errors, limits.go the limits.
package session

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Address names a session as clients do: a tenant and the id that the tenant chose.
type Address struct {
	Tenant uuid.UUID
	ID     string
}

// Page is a place in a list: the entries after (Time, ID). The zero Page is the beginning.
type Page struct {
	Time  time.Time
	ID    uuid.UUID
	Limit int
}

// Key names a session as the database does. Varve makes it and never uses it again.
type Key struct {
	Tenant uuid.UUID
	Key    uuid.UUID
}

// Session is one conversation: an append-only log of messages, and its sizes.
type Session struct {
	ID             string          `json:"id"`
	Key            uuid.UUID       `json:"key"`
	Format         Format          `json:"format"` // "" until the first append or PUT names one
	Model          string          `json:"model"`
	WindowTokens   int             `json:"window_tokens"` // the model's context window
	WindowSource   WindowSource    `json:"window_source"`
	OverheadTokens int             `json:"overhead_tokens"` // of what is sent beside messages, such as tools
	Metadata       json.RawMessage `json:"metadata"`
	Policy         Policy          `json:"policy"`
	LastSeq        int64           `json:"last_seq"`
	ContextTokens  int64           `json:"context_tokens"` // estimated tokens of the view, overhead aside
	TotalTokens    int64           `json:"total_tokens"`   // estimated tokens of the whole log
	Calibration    float64         `json:"calibration"`    // what an exact count makes of an estimated token
	UnseenTokens   int64           `json:"unseen_tokens"`  // what callers' usage counts beyond the estimate
	LastUsage      *Usage          `json:"last_usage"`     // nil for never reported
	Checkpoint     int             `json:"checkpoint"`     // number of the newest checkpoint, 0 for none
	Expiry         *Expiry         `json:"expiry"`         // lists leave it out
	Forked         *ForkedFrom     `json:"forked"`         // nil: it is no fork
	Failing        *Failing        `json:"failing"`        // nil: its compaction does not fail; lists leave it out
	CreatedAt      time.Time       `json:"created_at"`
	LastAppendAt   *time.Time      `json:"last_append_at"`
}

// ForkedFrom is what a session is a fork of.
type ForkedFrom struct {
	// the id of the other session; if that is erased, the fork is one of what it was a fork of, or none
	Session    string `json:"session"`
	Seq        int64  `json:"seq"`        // through which they share their log
	Checkpoint int    `json:"checkpoint"` // the checkpoint with which the fork began, 0 for none
}

// Fork asks for a session that shares the log of another.
type Fork struct {
	From        Address
	ID          string   // of the new session
	Seq         int64    // the last that they share; 0 for all
	ChangedBy   [32]byte // the digest of the key that makes it
	Idempotency *Idempotency
}

// Search says which sessions of a tenant a list has: those for which every condition that is set holds.
type Search struct {
	Metadata           json.RawMessage // a subset of the session's metadata
	Model              string
	Format             Format
	ForkedFrom         string // the id that the other session had
	UpdatedAfter       time.Time
	MinTokens          int64 // of the view
	PolicyVersionBelow int64 // of the tenant's policy, at the newest checkpoint
	OverWindow         bool  // the view and the overhead do not fit into the window
	Failing            bool  // compactions of it fail
	Quarantined        bool  // they fail, and are not tried for now
	Due                bool  // it waits to be compacted
	ByAppend           bool  // those first to which something was appended last, not those that are the newest
}

// Growth is the size of a session's log at one of its messages.
type Growth struct {
	Seq        int64     `json:"seq"`
	At         time.Time `json:"at"`          // when it was appended
	Tokens     int64     `json:"tokens"`      // of all messages through it
	ViewTokens int64     `json:"view_tokens"` // the same, with what was capped when it was appended
	Requests   int64     `json:"requests"`    // to the model, about: how often the assistant has spoken after others
}

// Listed is a session with its place in a list by time.
type Listed struct {
	Session
	At time.Time
}

// IsAll reports whether the list has all sessions.
func (s *Search) IsAll() bool { return reflect.ValueOf(*s).IsZero() }

// Created is the answer to a request that creates a session or gets the one that exists.
type Created struct {
	Session Session `json:"session"`
	Created bool    `json:"created"`
}

// Change sets members of a session; nil keeps a member (or, for a new session, its default).
type Change struct {
	Format           *Format
	Model            *string
	WindowTokens     *int
	WindowSource     WindowSource // of WindowTokens
	OverheadTokens   *int
	Metadata         json.RawMessage
	Policy           *Policy    // of this session alone
	EditPolicy       PolicyEdit // makes that policy from the stored layers
	DefaultPolicy    bool       // go back to the tenant's policy
	Retention        *Retention // of this session alone
	DefaultRetention bool       // go back to the tenant's retention
	ChangedBy        [32]byte   // the digest of the key that changes the policy
	Refused          bool       // a provider has refused the view as TooLong
	RefusedTokens    int64      // what it counted then, 0 if that is not known
}

// Basis is what a session's messages are read and counted by.
type Basis struct {
	Format       Format
	Model        string
	WindowTokens int
}

// Differs returns a *DiffersError if a session is not one that the change would have made: it has another format, or a
// model or window other than those that the change names itself.
func (c *Change) Differs(of Basis) error {
	switch {
	case c.Format != nil && of.Format != "" && *c.Format != of.Format:
		return &DiffersError{"format", string(of.Format), string(*c.Format)}
	case c.Model != nil && *c.Model != of.Model:
		return &DiffersError{"model", of.Model, *c.Model}
	case c.WindowTokens != nil && c.WindowSource == WindowOfRequest && *c.WindowTokens != of.WindowTokens:
		return &DiffersError{"window_tokens", strconv.Itoa(of.WindowTokens), strconv.Itoa(*c.WindowTokens)}
	}
	return nil
}

// ChangesPolicy reports whether the change sets the session's policy.
func (c Change) ChangesPolicy() bool {
	return c.Policy != nil || c.EditPolicy != nil || c.DefaultPolicy
}

// Message is one entry of the log.
type Message struct {
	Seq        int64
	Role       string
	Format     Format
	Tokens     int
	ClientID   string // "" for none
	Body       []byte // the exact bytes that came in
	CreatedAt  time.Time
	RemovedAt  *time.Time // nil unless it was taken out of every view
	RemovedSeq int64      // the seq that its removal took; read by exports only
	Digest     []byte     // SHA-256 of Body; nil for a message from before there were digests

	// SupersededBy is the seq of the message that has its client id now, RemovedSeq if none has, 0 unless it was
	// superseded.
	SupersededBy int64
}

// NewMessage is one message on its way into the log: its bytes and what was read from them, once, when it came in.
type NewMessage struct {
	Body       []byte
	Role       string
	Tokens     int
	ClientID   string   // "" for none
	Calls      []string // ids of the tool calls it makes
	Answers    []string // ids of the tool calls it answers
	StartsUnit bool     // false for a message that only answers calls
	Pinned     bool     // a system message; leading ones are the session's pinned head
	Flags      int32    // wire.Flags
	ItemID     string   // the provider's id that answers keep, "" for none
}

// Append is a request to add messages to the end of a session, all or none.
type Append struct {
	Session     Address
	Format      Format
	Messages    []NewMessage
	ExpectedSeq *int64       // the last seq that the caller has seen; nil does not check
	Usage       *Usage       // of the request whose answer is the last message of the assistant; nil for not reported
	ExactTokens *int64       // of these messages, if the policy names an exact tokenizer; not looked at beside Usage
	Idempotency *Idempotency // nil for none
	Make        *Change      // of the session that is made if there is none; nil makes none
	Basis       *Basis       // what the session was when it was read; nil if it was read for this append

	UsageIgnored string // why a usage that was reported is not in Usage
	Warnings     []Warning
}

// Appended is the answer to an append.
type Appended struct {
	FirstSeq int64 `json:"first_seq" schema:"minimum: 1"`
	LastSeq  int64 `json:"last_seq" schema:"minimum: 1"`
	Tokens   int64 `json:"tokens" schema:"Tokens"` // estimated tokens of these messages
	// estimated tokens of the view after them
	ContextTokens int64      `json:"context_tokens" schema:"Tokens"`
	TotalTokens   int64      `json:"total_tokens" schema:"Tokens"` // of the log after them
	Compaction    Compaction `json:"compaction"`                   // whether a compaction was queued
	Replayed      bool       `json:"replayed"`                     // the messages were in the log before
	// why the usage that was reported is not used; absent if it is, or if none was
	UsageIgnored string `json:"usage_ignored,omitempty"`
	// what views will repair of these messages, or leave out; absent for nothing
	Warnings []Warning `json:"warnings,omitempty"`
}

// The least and the largest window of a session, in tokens.
const (
	MinWindowTokens = 1_000
	MaxWindowTokens = 10_000_000
)

// Compaction is what an append did about compaction: `queued`, it reached the trigger or the hard limit and asked for
// one; `already_queued`, it reached one of them while a compaction waits or runs; `none`, it reached none of them anew,
// and a compaction that an earlier append asked for may still wait (`GET …/runs`).
type Compaction string

// The three answers.
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

// Run is one compaction: what asked for it, what it did, and how it ended.
type Run struct {
	ID uuid.UUID `json:"id"`
	// Cause is threshold, hard, idle, manual, sweep, follow_up, recompaction, restore, damage or summary.
	Cause string `json:"trigger" schema:"Trigger"`
	// `unchanged`: nothing to do; `postponed`: waiting is cheaper; `superseded`: another run ended first
	State            RunState        `json:"state"`
	Base             *int            `json:"base_checkpoint"` // the checkpoint that the run started from
	Checkpoint       *int            `json:"checkpoint"`      // the checkpoint that the run made
	Through          *int64          `json:"through_seq"`     // the last message that it covers
	TokensBefore     *int64          `json:"tokens_before"`
	TokensAfter      *int64          `json:"tokens_after"` // of the view that the run made
	ResultsPersisted *int            `json:"results_persisted"`
	BytesPersisted   *int64          `json:"bytes_persisted"`
	Stages           json.RawMessage `json:"stages" schema:"[]Stage"`
	// milliseconds by step
	Timings json.RawMessage `json:"timings_ms" schema:"type: object, additionalProperties: {type: number}"`
	Reason  string          `json:"reason"` // why now, or why not yet, in a sentence
	// empty before the decision
	Why json.RawMessage `json:"why" schema:"RunWhy"`
	// empty until the run ends
	Report      json.RawMessage `json:"report" schema:"RunReport"`
	Error       *string         `json:"error"`
	TriggeredAt time.Time       `json:"triggered_at"`
	StartedAt   *time.Time      `json:"started_at"`
	FinishedAt  *time.Time      `json:"finished_at"`
}

// RunState is the state of a run.
type RunState string

// The states of a run.
const (
	RunQueued     RunState = "queued"
	RunRunning    RunState = "running"
	RunDone       RunState = "done"
	RunUnchanged  RunState = "unchanged"  // there was nothing to do
	RunPostponed  RunState = "postponed"  // it costs more than it saves; the session asks again when it has grown
	RunSuperseded RunState = "superseded" // another run was first
	RunFailed     RunState = "failed"
)

// Ended reports whether the run will not change any more.
func (s RunState) Ended() bool { return s != RunQueued && s != RunRunning }
