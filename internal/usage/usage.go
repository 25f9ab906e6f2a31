// Package usage counts what tenants use, without making their requests slower. The counts are in the tables usage_days
// and usage_sessions, which package postgres writes; read.go reads them.
//
// Start at Counter. What is read is counted in memory and written a few seconds later: a process that is killed loses
// that. What is stored is not counted but looked up: a session's row says how far it was counted, so that nothing is
// lost or counted twice, however often a process is killed. Such a session is counted with the next request that
// changes or reads it, within a second if it has not changed for a while, or by the sweep's round through all sessions.
package usage

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const (
	newAfter     = time.Second      // until it is written that a session has changed that has not for a while
	knownFor     = 20 * time.Second // less than the time for which followers know that a session is in use
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
	write func(ctx context.Context, tenant uuid.UUID, read []session.Reading) error
	log   *slog.Logger
	after time.Duration // from the first count that is not written until it is

	mu      sync.Mutex
	pending map[session.Address]*session.Reading
	changed map[session.Address]time.Time // when it was last written that a session has changed
	timer   bool                          // one is set that writes the pending counts
	soon    bool                          // one is set that writes those of sessions that are not in changed

	writing sync.Mutex // held by the one that writes
}

// New returns a Counter that writes to a store.
func New(store *postgres.Store, log *slog.Logger) *Counter {
	return newCounter(store.CountUsage, log, 5*time.Second)
}

func newCounter(
	write func(ctx context.Context, tenant uuid.UUID, read []session.Reading) error, log *slog.Logger,
	after time.Duration,
) *Counter {
	return &Counter{write: write, log: log, after: after, pending: map[session.Address]*session.Reading{},
		changed: map[session.Address]time.Time{}}
}

// Served counts a view that a reader got, with its tokens.
func (c *Counter) Served(at session.Address, tokens int64) {
	c.add(at, session.Reading{Session: at.ID, Views: 1, TokensServed: tokens})
}

// ReadBack counts that something of a session was read back.
func (c *Counter) ReadBack(at session.Address) {
	c.add(at, session.Reading{Session: at.ID, ReadBacks: 1})
}

// Changed says that a session has stored something, which the next write counts.
func (c *Counter) Changed(at session.Address) {
	c.add(at, session.Reading{Session: at.ID, Changed: true})
}

func (c *Counter) add(at session.Address, more session.Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.merge(at, more)
	set(&c.mu, &c.timer, c.after, c.Flush)
	if more.Changed && time.Since(c.changed[at]) > knownFor {
		set(&c.mu, &c.soon, newAfter, c.flushNew)
	}
}

// set sets a timer that calls flush, unless it is set. mu is held.
func set(mu *sync.Mutex, timer *bool, after time.Duration, flush func(context.Context)) {
	if *timer {
		return
	}
	*timer = true
	time.AfterFunc(after, func() {
		mu.Lock()
		*timer = false
		mu.Unlock()
		flush(context.Background())
	})
}

// merge adds to the pending counts, unless there are too many sessions.
func (c *Counter) merge(at session.Address, more session.Reading) {
	known := c.pending[at]
	switch {
	case known != nil:
		known.Add(more)
	case len(c.pending) >= maxPending:
		droppedTotal.Add(float64(more.Views))
	default:
		c.pending[at] = &more
	}
}

// Flush writes what is counted and waits for that. What cannot be written is kept for the next time.
func (c *Counter) Flush(ctx context.Context) { c.flush(ctx, false) }

// flushNew does what Flush does for sessions of which it was not written for a while that they have changed.
func (c *Counter) flushNew(ctx context.Context) { c.flush(ctx, true) }

func (c *Counter) flush(ctx context.Context, onlyNew bool) {
	c.writing.Lock()
	defer c.writing.Unlock()
	taken := c.take(onlyNew, time.Now())
	byTenant := map[uuid.UUID][]session.Reading{}
	for at, read := range taken {
		byTenant[at.Tenant] = append(byTenant[at.Tenant], *read)
	}
	for tenant, read := range byTenant {
		for part := range slices.Chunk(read, maxStatement) {
			c.writePart(ctx, tenant, part)
		}
	}
}

// take takes what is pending.
func (c *Counter) take(onlyNew bool, now time.Time) map[session.Address]*session.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.changed, func(_ session.Address, at time.Time) bool { return now.Sub(at) > knownFor })
	taken := map[session.Address]*session.Reading{}
	for at, read := range c.pending {
		if _, known := c.changed[at]; onlyNew && (known || !read.Changed) {
			continue
		}
		taken[at] = read
		delete(c.pending, at)
	}
	for at, read := range taken {
		if read.Changed {
			c.changed[at] = now
		}
	}
	return taken
}

// writePart writes a tenant's counts, or puts them back.
func (c *Counter) writePart(ctx context.Context, tenant uuid.UUID, read []session.Reading) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	err := c.write(ctx, tenant, read)
	if err == nil {
		return
	}
	if !postgres.IsReadOnly(err) { // a process on a standby counts nothing
		c.log.Warn("usage is not counted yet", "tenant", tenant, "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range read {
		c.merge(session.Address{Tenant: tenant, ID: r.Session}, r)
	}
}
