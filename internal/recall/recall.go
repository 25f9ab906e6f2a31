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
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
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

// Counter counts reads until it has written them. Many goroutines may use it.
type Counter struct {
	Store *postgres.Store
	Log   *slog.Logger

	mu      sync.Mutex
	pending map[what]*count
	timer   bool // one is set that writes the pending counts

	writing sync.Mutex // held by the one that writes
}

// what is what was read and how.
type what struct {
	tenant       uuid.UUID
	session, ref string
	via          session.Via
}

type count struct {
	reads int64
	last  time.Time
}

// Read counts that a result or messages of a session were read back, by their ref.
func (c *Counter) Read(at session.Address, ref string, via session.Via) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(what{at.Tenant, at.ID, ref, via}, count{1, time.Now()})
	if !c.timer {
		c.timer = true
		time.AfterFunc(flushAfter, c.flushed)
	}
}

// add adds a count, unless there are too many.
func (c *Counter) add(key what, more count) {
	known := c.pending[key]
	switch {
	case known != nil:
		known.reads += more.reads
		if more.last.After(known.last) {
			known.last = more.last
		}
	case len(c.pending) >= maxPending:
		droppedTotal.Add(float64(more.reads))
	default:
		if c.pending == nil {
			c.pending = map[what]*count{}
		}
		c.pending[key] = &more
	}
}

// flushed writes what is counted when the timer rings.
func (c *Counter) flushed() {
	c.mu.Lock()
	c.timer = false
	c.mu.Unlock()
	c.Flush(context.Background())
}

// Flush writes what is counted and waits for that. What cannot be written is kept for the next time.
func (c *Counter) Flush(ctx context.Context) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	taken := c.pending
	c.pending = nil
	c.mu.Unlock()
	byTenant := map[uuid.UUID][]session.Recalled{}
	for key, n := range taken {
		byTenant[key.tenant] = append(byTenant[key.tenant],
			session.Recalled{Session: key.session, Ref: key.ref, Via: key.via, Reads: n.reads, Last: n.last})
	}
	for tenant, list := range byTenant {
		for len(list) > 0 {
			n := min(len(list), maxStatement)
			if err := c.write(ctx, tenant, list[:n]); err != nil {
				c.keep(tenant, list[:n], err)
			}
			list = list[n:]
		}
	}
}

func (c *Counter) write(ctx context.Context, tenant uuid.UUID, list []session.Recalled) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	found, err := c.Store.CountRecalls(ctx, tenant, list)
	for _, a := range found {
		section, _, _ := strings.Cut(a.Rule, ".") // whole rules may name tools
		recallTotal.WithLabelValues(a.Action, section, string(a.Via)).Add(float64(a.Reads))
	}
	return err
}

// keep puts back what could not be written.
func (c *Counter) keep(tenant uuid.UUID, list []session.Recalled, err error) {
	c.Log.Warn("reads are not counted yet", "tenant", tenant, "error", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range list {
		r := &list[i]
		c.add(what{tenant, r.Session, r.Ref, r.Via}, count{r.Reads, r.Last})
	}
}
