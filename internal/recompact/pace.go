package recompact

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
)

// paceSlack is how far the sessions that begin may fall behind their rate and catch up: jobs that wait for a time start
// some seconds after it.
const paceSlack = 10 * time.Second

// noRate is how many sessions of a recompaction without a rate may begin.
const noRate = 1 << 30

// allowed returns how many sessions may begin now by the rate and the hours of the recompaction. If that is 0, the next
// one may begin at NextStart.
func (c *locked) allowed() (int, error) {
	next := c.Now
	if c.StartAt != nil && c.StartAt.After(next) {
		next = *c.StartAt
	}
	if c.Hours != nil {
		var err error
		if next, err = c.Hours.Next(next); err != nil {
			return 0, err
		}
	}
	if next.After(c.Now) {
		c.NextStart = &next
		return 0, nil
	}
	if c.PerMinute == nil {
		return noRate, nil
	}
	from := c.Now.Add(-paceSlack)
	if c.NextStart == nil {
		c.NextStart = &c.Now
	} else if c.NextStart.Before(from) {
		c.NextStart = &from
	}
	if c.NextStart.After(c.Now) {
		return 0, nil
	}
	return int(c.Now.Sub(*c.NextStart)/c.interval()) + 1, nil
}

// interval returns the time from one session to the next that the rate allows.
func (c *locked) interval() time.Duration {
	return time.Minute / time.Duration(*c.PerMinute)
}

// count counts sessions that begin.
func (c *locked) count(sessions int) {
	next := c.NextStart.Add(time.Duration(sessions) * c.interval())
	c.NextStart = &next
}

// beginLater writes down when the next session may begin, and inserts the job that lets it.
func (s store) beginLater(ctx context.Context, tx pgx.Tx, c locked) error {
	err := postgres.Exec(ctx, tx, `
		UPDATE recompactions
		   SET next_start_at = $3
		 WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID, c.NextStart)
	if err != nil {
		return err
	}
	return s.insertFill(ctx, tx, c.TenantID, c.ID, *c.NextStart)
}
