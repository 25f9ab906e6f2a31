package session

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// MaxRecompactedTenants bounds the tenants of a recompaction.
const MaxRecompactedTenants = 1000

// RecompactionGroup is a recompaction of many tenants, begun by an operator: one of each of them.
type RecompactionGroup struct {
	ID        uuid.UUID
	Tenants   []uuid.UUID // nil for all, of one that is to begin
	Filter    SessionFilter
	Policy    json.RawMessage
	Pace      Pace // of each tenant
	Ask       bool
	CreatedAt time.Time
}

// RecompactionPart is the recompaction of one tenant of a group.
type RecompactionPart struct {
	Tenant uuid.UUID
	Recompaction
}

// Served is what sessions have served, and how often something was read back.
type Served struct {
	Views         int64    `json:"views"` // that were served
	TokensServed  int64    `json:"tokens_served"`
	ReadBacks     int64    `json:"read_backs"` // of everything
	TokensPerView *float64 `json:"tokens_per_view"`
	ReadsPerViews *float64 `json:"read_backs_per_1000_views"`
}

// ServedOfChanged is what sessions have served that a recompaction changed, and what was read back of what had left
// their views.
type ServedOfChanged struct {
	ViewTokens int64 `json:"view_tokens"` // of the views, just before and just after the recompaction
	Served
}

// Comparison is what sessions served before a recompaction changed them, and since, beside what the tenant was served
// since the recompaction began that is not of them.
type Comparison struct {
	Sessions int64           `json:"sessions"` // that it changed and that were not rolled back
	Before   ServedOfChanged `json:"before"`
	After    ServedOfChanged `json:"after"`
	Others   Served          `json:"others"`
}

// Add adds another comparison.
func (c *Comparison) Add(other Comparison) {
	c.Sessions += other.Sessions
	c.Before.add(other.Before)
	c.After.add(other.After)
	c.Others.add(other.Others)
}

func (s *ServedOfChanged) add(other ServedOfChanged) {
	s.ViewTokens += other.ViewTokens
	s.Served.add(other.Served)
}

func (s *Served) add(other Served) {
	s.Views += other.Views
	s.TokensServed += other.TokensServed
	s.ReadBacks += other.ReadBacks
	if s.Views > 0 {
		s.TokensPerView = new(float64(s.TokensServed) / float64(s.Views))
		s.ReadsPerViews = new(1000 * float64(s.ReadBacks) / float64(s.Views))
	}
}
