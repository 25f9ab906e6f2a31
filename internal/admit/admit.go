// Package admit has the one gate behind which work waits for what a process has little of: database connections,
// memory, processors, slots of jobs, calls of models. It also has the quotas of tenants, which are rates.
//
// Start at Gate. Work has a weight, and the work under way never weighs more than the gate's size. What does not fit
// waits: each tenant has its own queue, and next is the tenant that holds least, so that one who asks for much does not
// keep the others waiting. connections.go has the gates of database connections, processors.go what heavy work is,
// quota.go the quotas. The package owns the metrics varve_admit_* and the column tenants.limits.
package admit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/session"
)

// Config is how a gate admits work.
type Config struct {
	Name string // label of the metrics
	Size int64  // what the work under way weighs at most
	// Each is what one tenant's work weighs at most, unless it is the only work that the tenant has under way. With 0,
	// a tenant may take more while it holds less than twice what is free: alone it gets two thirds of the gate, and
	// whoever comes next finds some.
	Each     int64
	Patience time.Duration // how long work waits; 0: as long as its context
	Waiting  int           // how many works of a tenant may wait; 0: 256
	Busy     error         // for a tenant whose own work is in the way; nil: session.ErrOverCapacity as for the others
}

// Gate admits the work of tenants. Make it with New. A nil gate admits everything.
type Gate = gate[uuid.UUID]

// Turn is work that a gate has admitted. The zero value is that of a nil gate.
type Turn = turn[uuid.UUID]

// gate admits work of whoever has a key: a tenant, or the writers of a session.
type gate[K comparable] struct {
	config Config

	size, takenGauge, waitingGauge prometheus.Gauge
	refused, waited                prometheus.Counter

	mu    sync.Mutex
	taken int64
	lines map[K]*line[K] // of those who hold or wait
	queue []*line[K]     // of those who wait; of two who hold the same, the first one is next
	spare *line[K]       // of nobody
}

// line is what the work under way of one key weighs, and the work that waits, oldest first.
type line[K comparable] struct {
	key     K
	held    int64
	waiting []waiter
}

type waiter struct {
	weight   int64
	admitted chan struct{} // closed when the work may begin
}

type turn[K comparable] struct {
	gate   *gate[K]
	line   *line[K]
	weight int64
}

var (
	sizes    = gauge("varve_admit_size", "What work under way may weigh: connections, bytes, processors, jobs, calls.")
	taken    = gauge("varve_admit_taken", "What the work under way weighs.")
	waiting  = gauge("varve_admit_waiting", "Requests and jobs that wait for their turn.")
	refusals = counter("varve_admit_refused_total", "Requests and jobs that did not get their turn in time.")
	waits    = counter("varve_admit_waited_seconds_total", "How long requests and jobs have waited for their turn.")
)

func gauge(name, help string) *prometheus.GaugeVec {
	return promauto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"gate"})
}

func counter(name, help string) *prometheus.CounterVec {
	return promauto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"gate"})
}

// New returns a gate of tenants.
func New(c Config) *Gate { return newGate[uuid.UUID](c) }

func newGate[K comparable](c Config) *gate[K] {
	if c.Waiting == 0 {
		c.Waiting = 256
	}
	g := &gate[K]{
		config: c, lines: map[K]*line[K]{},
		size: sizes.WithLabelValues(c.Name), takenGauge: taken.WithLabelValues(c.Name),
		waitingGauge: waiting.WithLabelValues(c.Name),
		refused:      refusals.WithLabelValues(c.Name), waited: waits.WithLabelValues(c.Name),
	}
	if c.Size < math.MaxInt64 {
		g.size.Set(float64(c.Size))
	}
	return g
}

// Size returns the largest weight that is ever admitted.
func (g *gate[K]) Size() int64 {
	if g == nil {
		return math.MaxInt64
	}
	return g.config.Size
}

// Acquire waits until work of a weight may begin. The caller calls Done of the turn when the work is done.
//
// Errors: ErrOverCapacity, or the gate's Busy, if the work has waited too long, or too much of the tenant's waits;
// ErrTooHeavy if it weighs more than the gate's size; the error of ctx if that ended.
func (g *gate[K]) Acquire(ctx context.Context, key K, weight int64) (turn[K], error) {
	if g == nil {
		return turn[K]{}, nil
	}
	return g.acquire(ctx, key, weight, g.config.Patience, g.config.Waiting)
}

// Await waits like Acquire, as long as ctx and however much waits: for the next step of work that has begun. To refuse
// it now would throw away what was done.
func (g *gate[K]) Await(ctx context.Context, key K, weight int64) (turn[K], error) {
	if g == nil {
		return turn[K]{}, nil
	}
	return g.acquire(ctx, key, weight, 0, math.MaxInt)
}

func (g *gate[K]) acquire(
	ctx context.Context, key K, weight int64, patience time.Duration, mayWait int,
) (turn[K], error) {
	if weight > g.config.Size {
		g.refused.Inc()
		return turn[K]{}, fmt.Errorf("%d of %d: %w", weight, g.config.Size, session.ErrTooHeavy)
	}
	g.mu.Lock()
	l := g.lines[key]
	if l == nil {
		if l, g.spare = g.spare, nil; l == nil {
			l = &line[K]{}
		}
		l.key = key
		g.lines[key] = l
	}
	t := turn[K]{g, l, weight}
	if len(l.waiting) == 0 && g.next() == nil && g.may(l, weight) && g.taken+weight <= g.config.Size {
		g.take(l, weight)
		g.mu.Unlock()
		return t, nil
	}
	if len(l.waiting) >= mayWait {
		defer g.mu.Unlock()
		return turn[K]{}, g.refuse(l)
	}
	w := waiter{weight, make(chan struct{})}
	if len(l.waiting) == 0 {
		g.queue = append(g.queue, l)
	}
	l.waiting = append(l.waiting, w)
	g.waitingGauge.Inc()
	g.grant()
	g.mu.Unlock()
	if err := g.wait(ctx, l, w, patience); err != nil {
		return turn[K]{}, err
	}
	return t, nil
}

// wait returns when the work is admitted, or gives its turn up.
func (g *gate[K]) wait(ctx context.Context, l *line[K], w waiter, patience time.Duration) error {
	select {
	case <-w.admitted: // at once
		return nil
	default:
	}
	began := time.Now()
	defer func() { g.waited.Add(time.Since(began).Seconds()) }()
	var over <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-w.admitted:
		return nil
	case <-over:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(l.waiting, w)
	if at < 0 { // it was admitted at the same moment
		if ctx.Err() == nil {
			return nil
		}
		g.release(l, w.weight)
		return ctx.Err()
	}
	err := ctx.Err()
	if err == nil || patience > 0 && errors.Is(err, context.DeadlineExceeded) {
		err = g.refuse(l)
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	g.waitingGauge.Dec()
	if len(l.waiting) == 0 {
		g.queue = slices.DeleteFunc(g.queue, func(other *line[K]) bool { return other == l })
	}
	g.forget(l)
	g.grant() // what is behind it may fit
	return err
}

// refuse returns why work is not admitted: because of the tenant's own if that holds a quarter of what it could.
func (g *gate[K]) refuse(l *line[K]) error {
	g.refused.Inc()
	size := g.config.Size
	if g.config.Each > 0 {
		size = g.config.Each
	}
	if g.config.Busy != nil && l.held >= (size+3)/4 {
		return g.config.Busy
	}
	return session.ErrOverCapacity
}

// may reports whether a tenant's share allows more work.
func (g *gate[K]) may(l *line[K], weight int64) bool {
	if g.config.Each > 0 {
		return l.held == 0 || l.held+weight <= g.config.Each
	}
	return l.held+weight <= 2*(g.config.Size-g.taken)
}

// next returns the line whose turn it is: that of the tenant that holds least of those who may take more.
func (g *gate[K]) next() (next *line[K]) {
	for _, l := range g.queue {
		if g.may(l, l.waiting[0].weight) && (next == nil || l.held < next.held) {
			next = l
		}
	}
	return next
}

// grant admits what waits. The work whose turn it is must fit before any other begins: what is heavy would wait for
// ever if lighter work always came first.
func (g *gate[K]) grant() {
	for {
		l := g.next()
		if l == nil || g.taken+l.waiting[0].weight > g.config.Size {
			return
		}
		w := l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
		g.queue = slices.DeleteFunc(g.queue, func(other *line[K]) bool { return other == l })
		if len(l.waiting) > 0 {
			g.queue = append(g.queue, l)
		}
		g.waitingGauge.Dec()
		g.take(l, w.weight)
		close(w.admitted)
	}
}

func (g *gate[K]) take(l *line[K], weight int64) {
	l.held += weight
	g.taken += weight
	g.takenGauge.Add(float64(weight))
}

func (g *gate[K]) release(l *line[K], weight int64) {
	l.held -= weight
	g.taken -= weight
	g.takenGauge.Sub(float64(weight))
	g.forget(l)
	g.grant()
}

// forget removes the line of a tenant that neither holds nor waits.
func (g *gate[K]) forget(l *line[K]) {
	if l.held == 0 && len(l.waiting) == 0 {
		delete(g.lines, l.key)
		g.spare = l
	}
}

// Done ends the work. Further calls do nothing.
func (t *turn[K]) Done() {
	g := t.gate
	if g == nil {
		return
	}
	t.gate = nil
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(t.line, t.weight)
}
