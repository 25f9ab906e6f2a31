package session

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

// Errors of rollouts.
var (
	ErrRolloutRunning = errors.New("a new version of the tenant's policy is being rolled out")
	ErrRolloutSmall   = errors.New("compacted under the new version")
	ErrRolloutEnded   = errors.New("the rollout has ended")
)

// RolloutState is the state of a rollout.
type RolloutState string

// The states of a rollout.
const (
	RolloutRunning  RolloutState = "running"
	RolloutPromoted RolloutState = "promoted" // its version became the tenant's default
	RolloutBack     RolloutState = "back"     // all sessions have the tenant's default again
)

// MaxShare is the share of all sessions, in thousandths.
const MaxShare = 1000

// Rollout is a version of a tenant's policy that a share of its sessions has before the others.
type Rollout struct {
	ID           uuid.UUID     `json:"id"`
	State        RolloutState  `json:"state"`
	BaseVersion  int           `json:"base_version"` // the tenant's default, which the other sessions have
	Version      int           `json:"version"`
	PerMille     int           `json:"per_mille"`    // of the sessions without a policy of their own
	MinSessions  int           `json:"min_sessions"` // compacted under it before it is promoted
	Guard        *RolloutGuard `json:"guard"`        // null: nobody but a caller ends it
	Reason       *string       `json:"reason"`       // why the guard has ended it
	Recompaction *uuid.UUID    `json:"recompaction"` // that takes back what the version's compactions did
	Revision     int           `json:"revision"`     // how often it was changed
	StartedAt    time.Time     `json:"started_at"`
	EndedAt      *time.Time    `json:"ended_at"`
}

// RolloutGuard says when a rollout goes back by itself: when a rate of the new version is more than Factor times that
// of the default, each over MinCompactions or more.
type RolloutGuard struct {
	Factor         float64 `json:"factor"`
	MinCompactions int64   `json:"min_compactions"`
}

// RolloutStart is what a rollout begins with.
type RolloutStart struct {
	TenantPolicy               // Edit gets the tenant's layer, and that of From or nil
	From         int           // the version whose layer is tried; 0 for what Edit makes
	PerMille     int           //
	MinSessions  int           //
	Guard        *RolloutGuard //
}

// RolloutChange changes a rollout that runs, or ends it. What is zero is left as it is.
type RolloutChange struct {
	PerMille    int
	MinSessions *int
	Guard       *RolloutGuard
	NoGuard     bool // there is to be none any more
	Expected    *int // the revision that the caller knows; nil does not check
	Rebase      PolicyEdit
	RollBack    bool // what the version's compactions did
	Idempotency *Idempotency
}

// RolloutComparison is what compactions have done since a rollout began, under either version.
type RolloutComparison struct {
	Control RolloutArm `json:"control"`
	Canary  RolloutArm `json:"canary"`
}

// RolloutArm counts what runs under one version of a tenant's policy did, in sessions without a policy of their own.
type RolloutArm struct {
	Version      int              `json:"version"`
	Sessions     int64            `json:"sessions"`    // that a run ended in, or an attempt failed
	Compactions  int64            `json:"compactions"` // that changed a view
	TokensBefore int64            `json:"tokens_before"`
	TokensAfter  int64            `json:"tokens_after"`
	TokensSaved  int64            `json:"tokens_saved"`
	Trimmed      []RolloutStage   `json:"trimmed"`     // by the stage of the engine
	Failures     int64            `json:"failures"`    // attempts that failed by the session's fault
	Quarantined  int64            `json:"quarantined"` // runs that ended in a quarantine
	Summaries    RolloutSummaries `json:"summaries"`
	ReadBack     ReadBack         `json:"read_back"` // of what these compactions took out of views
	Rates        RolloutRates     `json:"rates"`
}

// RolloutStage is what one stage took out of views.
type RolloutStage struct {
	Stage       string `json:"stage"`
	Actions     int64  `json:"actions"`
	TokensSaved int64  `json:"tokens_saved"`
}

// RolloutSummaries are the answered summaries that compactions had asked models for, and what those have cost.
type RolloutSummaries struct {
	Answered int64 `json:"answered"`
	ModelSpending
}

// RolloutRates are quotients of an arm's counts; null if there is nothing to divide by.
type RolloutRates struct {
	SavedShare          *float64 `json:"saved_share"` // of the tokens before
	FailuresPerAttempt  *float64 `json:"failures_per_attempt"`
	ReadsPerCompaction  *float64 `json:"reads_per_compaction"`
	ReadsPer1000Trimmed *float64 `json:"reads_per_1000_tokens_trimmed"`
}

// Trimmed returns the tokens that all stages took out.
func (a *RolloutArm) trimmed() (tokens int64) {
	for i := range a.Trimmed {
		tokens += a.Trimmed[i].TokensSaved
	}
	return tokens
}

// SetRates divides the counts.
func (a *RolloutArm) SetRates() {
	a.Rates = RolloutRates{
		SavedShare:          quotient(a.TokensSaved, a.TokensBefore, 1),
		FailuresPerAttempt:  quotient(a.Failures, a.Failures+a.Compactions, 1),
		ReadsPerCompaction:  quotient(a.ReadBack.Reads, a.Compactions, 1),
		ReadsPer1000Trimmed: quotient(a.ReadBack.Reads, a.trimmed(), 1000),
	}
}

func quotient(count, of int64, scale float64) *float64 {
	if of <= 0 {
		return nil
	}
	return new(scale * float64(count) / float64(of))
}

// Trips returns which rate of the canary is too high, "" for none. Before both have enough compactions none is.
func (g *RolloutGuard) Trips(c *RolloutComparison) string {
	if c.Canary.attempts() < g.MinCompactions || c.Control.attempts() < g.MinCompactions {
		return ""
	}
	switch {
	case g.exceeds(c.Canary.Rates.FailuresPerAttempt, c.Control.Rates.FailuresPerAttempt):
		return "failures_per_attempt"
	case g.exceeds(c.Canary.Rates.ReadsPerCompaction, c.Control.Rates.ReadsPerCompaction):
		return "reads_per_compaction"
	}
	return ""
}

func (a *RolloutArm) attempts() int64 { return a.Compactions + a.Failures }

// exceeds reports whether a rate is too high; one of nothing is not.
func (g *RolloutGuard) exceeds(canary, control *float64) bool {
	return canary != nil && control != nil && *canary > g.Factor*(*control)
}
