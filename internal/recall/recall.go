// Package recall counts what is read back of what left a view, so that a policy's trims can be judged by how often they
// were regretted. The counts are in the table recalls, which package postgres writes.
//
// Start at Counter.Read. A read never waits for the database: it is counted in memory, and about a second later all
// counts of a tenant are written by one statement. A process that is killed loses the last second.
package recall

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tally"
)

const (
	flushAfter   = time.Second      // the first read that is not written yet
	flushTimeout = 10 * time.Second // of one statement
	maxPending   = 10_000           // counts in memory, about 3 MB; what is read beyond them is not counted
	maxStatement = 200              // counts that one statement writes
)

var (
	recallTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_recall_total",
		Help: "Times that something was read back, by the action and the section of the policy that took it out of " +
			"the view, and by the way.",
	}, []string{"action", "rule", "via"})
	droppedTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "varve_recall_uncounted_total",
		Help: "Times that something was read back and not counted, because too many counts waited to be written.",
	})
)

// Counter counts reads until it has written them. Make it with New. Many goroutines may use it.
type Counter struct {
	store *postgres.Store
	reads tally.Tally[what, count]
}

// what is what was read and how.
type what struct {
	session, ref string
	via          session.Via
}

type count struct {
	reads int64
	last  time.Time
}

// New returns a Counter that writes to a store.
func New(store *postgres.Store, log *slog.Logger) *Counter {
	c := &Counter{store: store}
	c.reads = tally.Tally[what, count]{
		After: flushAfter, Timeout: flushTimeout, Max: maxPending, Statement: maxStatement, Write: c.write,
		Merge: func(into *count, more count) {
			into.reads += more.reads
			if more.last.After(into.last) {
				into.last = more.last
			}
		},
		Failed: func(tenant uuid.UUID, err error) {
			if !postgres.IsReadOnly(err) { // a process on a standby counts nothing
				log.Warn("reads are not counted yet", "tenant", tenant, "error", err)
			}
		},
		Dropped: func(lost count) { droppedTotal.Add(float64(lost.reads)) },
	}
	return c
}

// Read counts that a result or messages of a session were read back, by their ref.
func (c *Counter) Read(at session.Address, ref string, via session.Via) {
	c.reads.Add(at.Tenant, what{at.ID, ref, via}, count{1, time.Now()})
}

// Flush writes what is counted and waits for that. What cannot be written is kept for the next time.
func (c *Counter) Flush(ctx context.Context) { c.reads.Flush(ctx) }

func (c *Counter) write(ctx context.Context, tenant uuid.UUID, list []tally.Entry[what, count]) error {
	recalled := make([]session.Recalled, len(list))
	for i, e := range list {
		recalled[i] = session.Recalled{
			Session: e.Key.session, Ref: e.Key.ref, Via: e.Key.via, Reads: e.Value.reads, Last: e.Value.last,
		}
	}
	found, err := c.store.CountRecalls(ctx, tenant, recalled)
	for _, a := range found {
		section, _, _ := strings.Cut(a.Rule, ".") // whole rules may name tools
		recallTotal.WithLabelValues(a.Action, section, string(a.Via)).Add(float64(a.Reads))
	}
	return err
}
