package share

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/varve-dev/varve/internal/session"
)

// lane is the connections of one class.
type lane struct {
	class    Class
	size     int
	patience time.Duration
	waiting  prometheus.Gauge
	refused  prometheus.Counter
	waiters  *waiters

	mu      sync.Mutex
	free    int
	tenants map[uuid.UUID]*tenant // that hold a connection or wait for one
	queue   []*tenant             // that wait, the one whose turn is next first
	spare   *tenant               // that does neither any more
}

// tenant is what one tenant has of a lane.
type tenant struct {
	id      uuid.UUID
	held    int
	waiting []*waiter
}

// Turn is the right to use one connection. The zero value is the right of work that is not divided.
type Turn struct {
	lane   *lane
	tenant *tenant
}

// mayHold reports whether a tenant that holds some connections may take another while some are free. A tenant alone
// gets two thirds of all, and whoever comes next always finds some: the more a tenant holds, the more must be free.
func mayHold(held, free int) bool { return held < 2*free }

// enter waits for a turn.
func (l *lane) enter(ctx context.Context, id uuid.UUID) (Turn, error) {
	l.mu.Lock()
	t := l.tenants[id]
	if t == nil {
		if t, l.spare = l.spare, nil; t == nil {
			t = &tenant{}
		}
		t.id = id
		l.tenants[id] = t
	}
	turn := Turn{l, t}
	if len(t.waiting) == 0 && mayHold(t.held, l.free) {
		t.held++
		l.free--
		l.mu.Unlock()
		return turn, nil
	}
	if len(t.waiting) >= maxWaiting {
		defer l.mu.Unlock()
		return Turn{}, l.refuse(t)
	}
	w := l.waiters.get()
	defer l.waiters.put(w)
	if len(t.waiting) == 0 {
		l.queue = append(l.queue, t)
	}
	t.waiting = append(t.waiting, w)
	l.mu.Unlock()
	return turn, l.wait(ctx, t, w)
}

func (l *lane) wait(ctx context.Context, t *tenant, w *waiter) error {
	came, err := w.await(ctx, l.patience, l.waiting)
	if came {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(t.waiting, w)
	if at < 0 {
		<-w.turn
		return nil // it came at the last moment
	}
	t.waiting = slices.Delete(t.waiting, at, at+1)
	if len(t.waiting) == 0 {
		l.queue = slices.DeleteFunc(l.queue, func(other *tenant) bool { return other == t })
	}
	if err == nil {
		err = l.refuse(t)
	}
	l.forget(t)
	return err
}

// refuse returns why a tenant does not get a connection.
func (l *lane) refuse(t *tenant) error {
	l.refused.Inc()
	if l.class != Keys && 4*t.held >= l.size {
		return session.ErrTenantBusy
	}
	return session.ErrOverCapacity
}

// Done gives the connection to who waits for it.
func (t Turn) Done() {
	if t.lane == nil {
		return
	}
	l := t.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	t.tenant.held--
	l.free++
	l.grant()
	l.forget(t.tenant)
}

// grant gives free connections to those who wait, one tenant after the other, and leaves out who holds too many.
func (l *lane) grant() {
	for i := 0; i < len(l.queue) && l.free > 0; {
		t := l.queue[i]
		if !mayHold(t.held, l.free) {
			i++
			continue
		}
		t.waiting[0].turn <- struct{}{}
		t.waiting = slices.Delete(t.waiting, 0, 1)
		t.held++
		l.free--
		l.queue = slices.Delete(l.queue, i, i+1)
		if len(t.waiting) > 0 {
			l.queue = append(l.queue, t)
		}
	}
}

// forget removes a tenant that neither holds nor waits.
func (l *lane) forget(t *tenant) {
	if t.held == 0 && len(t.waiting) == 0 {
		delete(l.tenants, t.id)
		l.spare = t
	}
}
