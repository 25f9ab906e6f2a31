// Package usage counts what tenants use, without making their requests slower. The counts are in the tables usage_days
// and usage_sessions, which package postgres writes.
//
// Start at Counter. What is read is counted in memory and written a few seconds later: a process that is killed loses
// that. What is stored is not counted but looked up: a session's row says how far it was counted, so that nothing is
// lost or counted twice, however often a process is killed. Such a session is counted with the next request that
// changes or reads it, or by the sweep's round through all sessions.
package usage

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const (
	flushAfter   = 5 * time.Second // the first count that is not written yet
	flushTimeout = 30 * time.Second
	maxPending   = 50_000 // sessions in memory, about 10 MB
	maxStatement = 500    // sessions that one transaction counts
)

var droppedTotal = promauto.NewCounter(prometheus.CounterOpts{
	Name: "varve_usage_uncounted_views_total",
	Help: "Views that the usage lacks, because too many counts waited to be written.",
})

// Counter counts the use of sessions until it has written it. Make it with New. Many goroutines may use it.
type Counter struct {
	readings counts[string, session.Reading] // by the session's id
}

// New returns a Counter that writes to a store.
func New(store *postgres.Store, log *slog.Logger) *Counter {
	c := &Counter{}
	c.readings = counts[string, session.Reading]{
		After: flushAfter, Timeout: flushTimeout, Max: maxPending, Statement: maxStatement,
		Merge: (*session.Reading).Add,
		Write: func(ctx context.Context, tenant uuid.UUID, list []entry[string, session.Reading]) error {
			read := make([]session.Reading, len(list))
			for i, e := range list {
				read[i] = e.Value
			}
			return store.CountUsage(ctx, tenant, read)
		},
		Failed: func(tenant uuid.UUID, err error) {
			if !postgres.IsReadOnly(err) { // a process on a standby counts nothing
				log.Warn("usage is not counted yet", "tenant", tenant, "error", err)
			}
		},
		Dropped: func(lost session.Reading) { droppedTotal.Add(float64(lost.Views)) },
	}
	return c
}

// Served counts a view that a reader got, with its tokens.
func (c *Counter) Served(at session.Address, tokens int64) {
	c.add(at, session.Reading{Session: at.ID, Views: 1, TokensServed: tokens})
}

// ReadBack counts that something of a session was read back.
func (c *Counter) ReadBack(at session.Address) {
	c.add(at, session.Reading{Session: at.ID, ReadBacks: 1})
}

// Changed has what a session has stored since it was counted last counted.
func (c *Counter) Changed(at session.Address) {
	c.add(at, session.Reading{Session: at.ID, Changed: true})
}

func (c *Counter) add(at session.Address, more session.Reading) {
	c.readings.Add(at.Tenant, at.ID, more)
}

// Flush writes what is counted and waits for that. What cannot be written is kept for the next time.
func (c *Counter) Flush(ctx context.Context) { c.readings.Flush(ctx) }
