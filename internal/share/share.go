// Package share divides what one process has among the tenants that use it: its database connections, by class of work,
// and the turns of those who write to one session.
//
// Start at Gate. The API makes one and puts it into the context of every request with With; package postgres asks
// Connection before it takes a connection, and Session before it takes a session's lock. Work whose context has no gate
// (a worker's, a command's) is not divided. The package owns no tables and no connections: it counts.
package share

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/session"
)

// Class is a kind of work that has connections of its own.
type Class int

// The classes. Interactive is appends, views and small reads; Bulk is lists, exports, previews and what an operator
// asks; Keys looks up keys of which nobody knows yet whose they are.
const (
	Interactive Class = iota
	Bulk
	Keys
	classes
)

func (c Class) String() string { return [classes]string{"interactive", "bulk", "keys"}[c] }

// How long work of a class waits for a connection, and how many of one tenant may wait.
const (
	interactivePatience = 2 * time.Second
	bulkPatience        = 5 * time.Second
	keysPatience        = time.Second
	maxWaiting          = 256
)

var (
	waiting = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "varve_share_waiting", Help: "Requests that wait for their turn, by what they wait for.",
	}, []string{"for"})
	refused = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_share_refused_total", Help: "Requests that did not get their turn, by what they waited for.",
	}, []string{"for"})
)

// Gate divides the connections of one process. Make it with New.
type Gate struct {
	places   [classes]place
	sessions sessions

	writerPatience time.Duration
	waiters        waiters
}

// place is what a context carries: the gate and the class of the work.
type place struct {
	gate *Gate
	lane lane
}

// Config is what a gate divides.
type Config struct {
	Connections int
	Patience    time.Duration // how long everything waits for its turn; 0: as long as its class does
}

// New returns a gate for a pool of connections. A sixteenth is for keys and a quarter for bulk work, at least one each.
func New(config Config) *Gate {
	g := &Gate{}
	keys, bulk := max(1, config.Connections/16), max(1, config.Connections/4)
	g.open(Keys, keys, cmp.Or(config.Patience, keysPatience))
	g.open(Bulk, bulk, cmp.Or(config.Patience, bulkPatience))
	g.open(Interactive, max(1, config.Connections-keys-bulk), cmp.Or(config.Patience, interactivePatience))
	g.writerPatience = cmp.Or(config.Patience, writerPatience)
	return g
}

func (g *Gate) open(c Class, size int, patience time.Duration) {
	p := &g.places[c]
	p.gate = g
	p.lane = lane{class: c, free: size, size: size, patience: patience, tenants: map[uuid.UUID]*tenant{}}
	p.lane.waiters = &g.waiters
	p.lane.waiting, p.lane.refused = waiting.WithLabelValues(c.String()), refused.WithLabelValues(c.String())
}

// Size returns how many connections a class has, and how many of them one tenant can hold.
func (g *Gate) Size(c Class) (all, tenant int) {
	size := g.places[c].lane.size
	for tenant < size && mayHold(tenant, size-tenant) {
		tenant++
	}
	return size, tenant
}

type placeKey struct{}

// With returns a context whose work belongs to a class of g.
func With(ctx context.Context, g *Gate, c Class) context.Context {
	return context.WithValue(ctx, placeKey{}, &g.places[c])
}

func placeOf(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}

// Connection waits until a tenant may take one more connection for work of the context's class. The caller ends the
// turn when it has given the connection back.
//
// Errors: ErrTenantBusy if the tenant's own work fills its share, ErrOverCapacity if that of others does.
func Connection(ctx context.Context, tenant uuid.UUID) (Turn, error) {
	p := placeOf(ctx)
	if p == nil {
		return Turn{}, nil
	}
	return p.gate.Connection(ctx, tenant)
}

// Connection does the same for the connections that g divides, whichever gate the context has.
func (g *Gate) Connection(ctx context.Context, tenant uuid.UUID) (Turn, error) {
	p := placeOf(ctx)
	if p == nil {
		return Turn{}, nil
	}
	p = &g.places[p.lane.class]
	if p.lane.class == Keys {
		tenant = uuid.Nil // who sends an invented key can choose the tenant
	}
	return p.lane.enter(ctx, tenant)
}

// Session waits for a turn to write to a session: few writers of one session hold connections, the others wait here.
//
// Errors: ErrSessionBusy.
func Session(ctx context.Context, at session.Address) (Pen, error) {
	p := placeOf(ctx)
	if p == nil {
		return Pen{}, nil
	}
	return p.gate.enterSession(ctx, at)
}

// waiter waits for a turn.
type waiter struct {
	turn    chan struct{} // has room for the one turn
	timeout *time.Timer
}

// waiters are those that wait no more, for the next ones.
type waiters struct{ pool sync.Pool }

func (p *waiters) get() *waiter {
	if w, ok := p.pool.Get().(*waiter); ok {
		return w
	}
	return &waiter{make(chan struct{}, 1), time.NewTimer(time.Hour)}
}

// put takes a waiter back that nobody knows any more. A turn that came too late must have been taken.
func (p *waiters) put(w *waiter) {
	w.timeout.Stop()
	p.pool.Put(w)
}

// await waits for a turn, and reports whether it came. If it did not, err is that of ctx, or nil if patience is over.
func (w *waiter) await(
	ctx context.Context, patience time.Duration, waiting prometheus.Gauge,
) (came bool, err error) {
	waiting.Inc()
	defer waiting.Dec()
	w.timeout.Reset(patience)
	select {
	case <-w.turn:
		return true, nil
	case <-w.timeout.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
