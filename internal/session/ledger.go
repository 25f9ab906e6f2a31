package session

import (
	"time"

	"github.com/google/uuid"
)

// Use is what the ledger has of a tenant or a session. Tokens are Varve's estimates, but for those of language models.
type Use struct {
	Messages          int64 `json:"messages"` // appended, also those that were removed since
	Bytes             int64 `json:"bytes"`    // of these messages
	Tokens            int64 `json:"tokens"`   // of these messages
	Views             int64 `json:"views"`    // served with their messages: a 304 is none
	TokensServed      int64 `json:"tokens_served"`
	TokensSaved       int64 `json:"tokens_saved"` // that the logs had more when these views were counted
	ReadBacks         int64 `json:"read_backs"`
	Compactions       int64 `json:"compactions"` // checkpoints, restored ones included
	ModelCalls        int64 `json:"model_calls"` // of language models that write summaries
	ModelInputTokens  int64 `json:"model_input_tokens"`
	ModelOutputTokens int64 `json:"model_output_tokens"`
	ModelCostMicros   int64 `json:"model_cost_micros"` // millionths of the unit that the operator's prices are in
}

// Add adds another Use.
func (u *Use) Add(more Use) {
	u.Messages += more.Messages
	u.Bytes += more.Bytes
	u.Tokens += more.Tokens
	u.Views += more.Views
	u.TokensServed += more.TokensServed
	u.TokensSaved += more.TokensSaved
	u.ReadBacks += more.ReadBacks
	u.Compactions += more.Compactions
	u.ModelCalls += more.ModelCalls
	u.ModelInputTokens += more.ModelInputTokens
	u.ModelOutputTokens += more.ModelOutputTokens
	u.ModelCostMicros += more.ModelCostMicros
}

// DayOfUse is what a tenant has used on a day in UTC.
type DayOfUse struct {
	Day time.Time
	Use
}

// SessionUse counts what a session has used since it was made. Of language models it counts only the answers that are
// kept.
type SessionUse struct {
	Session   string
	Key       uuid.UUID
	CreatedAt time.Time
	Use
}

// HourOfRuns counts the compactions that were asked for in an hour, by what has become of them.
type HourOfRuns struct {
	Hour       time.Time `json:"hour"`       // where it begins, in UTC
	Done       int64     `json:"done"`       // that made a checkpoint
	Unchanged  int64     `json:"unchanged"`  // that found nothing to take out
	Postponed  int64     `json:"postponed"`  // that were not worth it yet, or whose work another one did
	Failed     int64     `json:"failed"`     // that ended with an error
	Unfinished int64     `json:"unfinished"` // that wait or run
	Saved      int64     `json:"tokens_saved"`
	Results    int64     `json:"results"` // that left the views
}

// MaxRunHours is for how many hours runs are counted at most.
const MaxRunHours = 168

// State counts a tenant's sessions, and those that need something now, each up to MaxStateCount. OverWindow is some
// seconds behind.
type State struct {
	Sessions    int64      `json:"sessions"`
	OverWindow  int64      `json:"over_window"` // whose view does not fit into the window
	Failing     int64      `json:"failing"`     // whose compaction fails
	Quarantined int64      `json:"quarantined"` // of these, those that are not tried again for now
	Due         int64      `json:"due"`         // that wait to be compacted
	OldestDueAt *time.Time `json:"oldest_due_at"`
}

// MaxStateCount is where counts of State end.
const MaxStateCount = 1000

// StateOfAll counts the tenants, and what State counts of one of all of them, each up to MaxStateOfAll.
type StateOfAll struct {
	Tenants int64 `json:"tenants"`
	State
}

// MaxStateOfAll is where counts of StateOfAll end.
const MaxStateOfAll = 10_000

// Reading is what a process has counted of reads of a session since it has written that. What the session has stored is
// counted with it.
type Reading struct {
	Session                        string // its id
	Views, TokensServed, ReadBacks int64
	Changed                        bool // a request has changed the session
}

// Add adds another Reading of the session.
func (r *Reading) Add(more Reading) {
	r.Views += more.Views
	r.TokensServed += more.TokensServed
	r.ReadBacks += more.ReadBacks
	r.Changed = r.Changed || more.Changed
}
