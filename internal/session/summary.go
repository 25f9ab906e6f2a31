package session

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// SummaryDigest identifies a request for a summary: summary.Digest.
type SummaryDigest = [32]byte

// SummaryID names a summary that a model writes.
type SummaryID struct {
	Session Key
	Model   string // the operator's name
	Digest  SummaryDigest
}

// DueSummary is a summary that a model has to write.
type DueSummary struct {
	Model   string
	Digest  SummaryDigest
	First   int64 // seqs of the messages that it covers
	Last    int64
	Request []byte // summary.Request as JSON
}

// SummaryState is the state of a summary that a model has to write.
type SummaryState string

// The states of summaries.
const (
	SummaryDue        SummaryState = "due"        // a job will ask the model
	SummaryAsking     SummaryState = "asking"     // a job asks it
	SummaryAnswered   SummaryState = "answered"   // there is an answer
	SummaryFailed     SummaryState = "failed"     // the model has failed; a later compaction asks again
	SummarySuperseded SummaryState = "superseded" // nothing waits for it any more
)

// SummaryAnswer is what a model wrote, as it was accepted.
type SummaryAnswer struct {
	Retain     string
	Summary    string
	Flags      []string
	Provenance Provenance
}

// Summary is a summary that a model has to write or has written.
type Summary struct {
	Model      string
	Digest     SummaryDigest
	First      int64
	Last       int64
	Checkpoint int // that waited for it first
	State      SummaryState
	Attempts   int // of jobs that asked
	SummaryAnswer
	Reason     string // why it failed, "" otherwise
	AskAfter   *time.Time
	CreatedAt  time.Time
	AskedAt    *time.Time
	FinishedAt *time.Time
}

// Provenance says where a model's answer came from and what it cost.
type Provenance struct {
	Model         string `json:"model"`                      // the operator's name
	Provider      string `json:"provider"`                   // the operator's name
	AnsweredBy    string `json:"answered_by"`                // the model as the provider names it
	PromptVersion string `json:"prompt_version"`             //
	SourceDigest  string `json:"source_digest"`              // SHA-256 of the request, in hexadecimal digits
	Chunks        int    `json:"chunks" schema:"minimum: 1"` // that the request was split into; 1 if it was not
	// of the model, those whose answers were kept included
	Calls int `json:"calls"`
	// calls whose answers were kept: they cost nothing again
	Kept    int           `json:"kept"`
	Spent   ModelSpending `json:"spent"`             // by calls whose answers were not kept
	Refused []string      `json:"refused,omitempty"` // why answers before were not taken
	// figures of the check of what the answer states
	Claims json.RawMessage `json:"claims,omitempty" schema:"type: object"`
	Keys   [][]byte        `json:"-"` // of the calls whose answers it is made of
}

// ModelSpending is what calls of models have used.
type ModelSpending struct {
	Calls      int64 `json:"calls"`
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CostMicros int64 `json:"cost_micros"` // millionths of the operator's currency
}

// Plus returns the sum of two.
func (s ModelSpending) Plus(other ModelSpending) ModelSpending {
	s.Calls += other.Calls
	s.Input += other.Input
	s.Output += other.Output
	s.CostMicros += other.CostMicros
	return s
}

// Minus returns the difference.
func (s ModelSpending) Minus(other ModelSpending) ModelSpending {
	return s.Plus(ModelSpending{-other.Calls, -other.Input, -other.Output, -other.CostMicros})
}

// ModelBudget bounds what calls of models may use. A member that is 0 bounds nothing.
type ModelBudget struct {
	Calls      int64 `json:"calls"`
	Tokens     int64 `json:"tokens"` // of requests and answers
	CostMicros int64 `json:"cost_micros"`
}

// Allows reports whether a spending is within the budget.
func (b ModelBudget) Allows(s ModelSpending) bool {
	return within(s.Calls, b.Calls) && within(s.Input+s.Output, b.Tokens) && within(s.CostMicros, b.CostMicros)
}

// Quotas returns quotas that have this budget of a day, and bound nothing else.
func (b ModelBudget) Quotas() Quotas {
	return Quotas{ModelCalls: b.Calls, ModelTokens: b.Tokens, ModelCost: float64(b.CostMicros) / 1e6}
}

func within(n, limit int64) bool { return limit == 0 || n <= limit }

// ModelSpent is what a tenant's calls of one model used on a day, of those under way what they have reserved.
type ModelSpent struct {
	Model string `json:"model"` // "" for all of them
	ModelSpending
}

// ModelCall is a call of a model that is about to be made.
type ModelCall struct {
	Tenant        uuid.UUID
	Session       uuid.UUID // uuid.Nil for a request that has no session
	Key           [32]byte  // of provider, model, prompt version and what is asked
	Provider      string
	Model         string // the operator's name
	PromptVersion string
	Digest        SummaryDigest
	Bound         ModelSpending // the most that it can use
	Time          time.Duration // after which its process counts as dead
}

// ModelLease is the right to make a call. Nobody else makes it until it ends.
type ModelLease struct {
	Call ModelCall
	ID   uuid.UUID
}

// ModelAnswer is what a model answered to a call.
type ModelAnswer struct {
	Text       string
	AnsweredBy string // the model as the provider names it
	Cached     int64  // tokens of the request that the provider had in its cache
	Spent      ModelSpending
}
