// Package budget admits work by its weight: bytes of memory, or processors. What the work under way weighs together
// never exceeds the budget; what does not fit waits for its turn. Each tenant has its own line. The tenant that holds
// least is next, so that one who asks for much does not keep the others waiting.
//
// Start at New and Budget.Acquire. A process has one Budget of memory and one of processors, which internal/process
// makes. Small and frequent work is never weighed: a Budget has one lock for all tenants. The package owns the metrics
// varve_budget_*, and no tables.
package budget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/varve-dev/varve/internal/session"
)

// Budget admits work. A nil Budget admits all work at once.
type Budget struct {
	total    int64
	share    int64 // of one tenant
	patience time.Duration

	totalGauge, takenGauge, waitingGauge prometheus.Gauge
	refusedTotal, waitedSeconds          prometheus.Counter

	mu       sync.Mutex
	taken    int64
	lines    map[uuid.UUID]*line // of the tenants that hold or wait
	arrivals int64
}

// line is what a tenant holds, and its work that waits, the oldest first.
type line struct {
	held    int64
	waiting []*waiter
}

type waiter struct {
	weight   int64
	arrival  int64
	admitted chan struct{} // closed when the work may begin
}

// maxWaiting is how much work of a tenant waits at most: what waits holds memory, too.
const maxWaiting = 256

// New returns a budget of total units of a resource, whose name is the label of its metrics. Work waits as long as
// patience, or without one as long as its context. A tenant holds at most three quarters of the budget, unless it
// holds nothing else.
func New(resource string, total int64, patience time.Duration) *Budget {
	b := &Budget{
		total: total, share: max(1, total-total/4), patience: patience, lines: map[uuid.UUID]*line{},
		totalGauge: totalUnits.WithLabelValues(resource), takenGauge: takenUnits.WithLabelValues(resource),
		waitingGauge: waitingWork.WithLabelValues(resource),
		refusedTotal: refusedWork.WithLabelValues(resource), waitedSeconds: waitedTime.WithLabelValues(resource),
	}
	b.totalGauge.Set(float64(total))
	return b
}

// Total returns the budget as a whole: the largest weight that is ever admitted.
func (b *Budget) Total() int64 {
	if b == nil {
		return math.MaxInt64
	}
	return b.total
}

// Acquire waits until work of a tenant may begin that weighs so much. The caller calls release when the work is done;
// further calls do nothing.
//
// Errors: session.ErrOverCapacity if the work has to wait for too long, or too much of the tenant's waits already;
// session.ErrTooHeavy if it weighs more than the whole budget; the error of ctx if that was cancelled.
func (b *Budget) Acquire(ctx context.Context, tenant uuid.UUID, weight int64) (release func(), err error) {
	switch {
	case b == nil || weight <= 0:
		return func() {}, ctx.Err()
	case weight > b.total:
		b.refusedTotal.Inc()
		return nil, fmt.Errorf("%d of %d: %w", weight, b.total, session.ErrTooHeavy)
	}
	w, err := b.enqueue(tenant, weight, maxWaiting)
	if err == nil {
		err = b.wait(ctx, tenant, w, b.patience)
	}
	if err != nil {
		b.refusedTotal.Inc()
		return nil, err
	}
	return sync.OnceFunc(func() { b.release(tenant, weight) }), nil
}

func (b *Budget) enqueue(tenant uuid.UUID, weight int64, longest int) (*waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lines[tenant]
	if l == nil {
		l = &line{}
		b.lines[tenant] = l
	}
	if len(l.waiting) >= longest {
		return nil, fmt.Errorf("%w: %d requests of the tenant wait already", session.ErrOverCapacity, longest)
	}
	b.arrivals++
	w := &waiter{weight: weight, arrival: b.arrivals, admitted: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	b.waitingGauge.Inc()
	b.admit()
	return w, nil
}

// wait returns when the work is admitted, or gives its place up: after patience if that is not 0, or when ctx ends.
func (b *Budget) wait(ctx context.Context, tenant uuid.UUID, w *waiter, patience time.Duration) error {
	select {
	case <-w.admitted: // what need not wait makes no timer
		return nil
	default:
	}
	began := time.Now()
	defer func() { b.waitedSeconds.Add(time.Since(began).Seconds()) }()
	waited, cancel := ctx, context.CancelFunc(func() {})
	if patience > 0 {
		waited, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	select {
	case <-w.admitted:
		return nil
	case <-waited.Done():
	}
	if !b.giveUp(tenant, w) {
		b.release(tenant, w.weight) // it was admitted at the same moment
	}
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return session.ErrOverCapacity
}

// giveUp takes work that waits out of its line. It reports false if the work was admitted meanwhile.
func (b *Budget) giveUp(tenant uuid.UUID, w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lines[tenant]
	if l == nil {
		return false
	}
	for i, other := range l.waiting {
		if other == w {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			b.waitingGauge.Dec()
			b.forget(tenant)
			b.admit() // those behind it may fit
			return true
		}
	}
	return false
}

func (b *Budget) release(tenant uuid.UUID, weight int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= weight
	b.takenGauge.Sub(float64(weight))
	b.lines[tenant].held -= weight
	b.forget(tenant)
	b.admit()
}

// forget drops the line of a tenant that neither holds nor waits.
func (b *Budget) forget(tenant uuid.UUID) {
	if l := b.lines[tenant]; l.held == 0 && len(l.waiting) == 0 {
		delete(b.lines, tenant)
	}
}

// admit lets work begin while there is room. The work whose turn it is must fit before any other begins: what is
// heavy would wait for ever if lighter work always came first.
func (b *Budget) admit() {
	for {
		next := b.next()
		if next == nil || b.taken+next.waiting[0].weight > b.total {
			return
		}
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		next.held += w.weight
		b.taken += w.weight
		b.takenGauge.Add(float64(w.weight))
		b.waitingGauge.Dec()
		close(w.admitted)
	}
}

// next returns the line whose turn it is: that of the tenant that holds least, and among those the oldest. A tenant
// that would exceed its share waits for its own work.
func (b *Budget) next() (next *line) {
	for _, l := range b.lines {
		if len(l.waiting) == 0 || l.held > 0 && l.held+l.waiting[0].weight > b.share {
			continue
		}
		isFirst := next == nil || l.held < next.held ||
			l.held == next.held && l.waiting[0].arrival < next.waiting[0].arrival
		if isFirst {
			next = l
		}
	}
	return next
}
