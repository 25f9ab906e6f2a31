package command

import (
	"encoding/json"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// Filter selects sessions by flags; all, without any.
type Filter struct {
	Session       []string          `sep:"none" help:"Only this session; repeat it for more."`
	Metadata      map[string]string `mapsep:"none" placeholder:"KEY=VALUE" help:"Only with it; repeat it for more."`
	CreatedBefore *time.Time        `placeholder:"TIME" help:"Only sessions made before, e.g. 2026-01-31T00:00:00Z."`
	CreatedAfter  *time.Time        `placeholder:"TIME" help:"Only sessions made after."`
	MinTokens     *int64            `placeholder:"N" help:"Only sessions whose view has at least N tokens."`

	Model        string         `help:"Only sessions with this model."`
	Format       session.Format `help:"Only sessions in this format."`
	ForkedFrom   string         `placeholder:"SESSION" help:"Only its forks."`
	UpdatedAfter *time.Time     `placeholder:"TIME" help:"Only sessions to which something was appended after."`
	OverWindow   bool           `help:"Only sessions whose view has no room in their window."`
	Failing      bool           `help:"Only sessions whose compaction fails."`
	Percent      int            `placeholder:"N" help:"Only N percent of them, always the same ones; more adds some."`

	PolicyVersionBelow *int64 `placeholder:"N" help:"Only those last compacted under an older policy of the tenant."`
	EngineVersionBelow *int64 `placeholder:"N" help:"Only those last compacted by an older engine."`
}

// Selected returns what the flags select.
func (f *Filter) Selected() (selected session.SessionFilter, err error) {
	selected = session.SessionFilter{
		Sessions: f.Session, CreatedBefore: f.CreatedBefore, CreatedAfter: f.CreatedAfter,
		MinTokens: f.MinTokens, PolicyVersionBelow: f.PolicyVersionBelow, EngineVersionBelow: f.EngineVersionBelow,
		Model: f.Model, Format: f.Format, ForkedFrom: f.ForkedFrom, UpdatedAfter: f.UpdatedAfter,
		OverWindow: f.OverWindow, Failing: f.Failing, Percent: f.Percent,
	}
	if len(f.Metadata) > 0 {
		selected.Metadata, err = json.Marshal(f.Metadata)
	}
	return selected, err
}
