package request

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/postgres"
)

// How many requests may wait for one run or import, for those of one tenant, and in the process.
const (
	maxWaitForOne    = 128
	maxWaitOfTenant  = 1024
	maxWaitOfProcess = 8192
)

// How often everything that is waited for is looked at: as a net below the notifications, and instead of them where
// they do not arrive.
const (
	netPace  = 5 * time.Second
	deafPace = 250 * time.Millisecond
)

var waitingRequests = promauto.NewGauge(prometheus.GaugeOpts{
	Name: "varve_waiting_requests", Help: "Requests that wait for the end of a run or an import.",
})

// lobby is where requests wait. One goroutine listens for all of them while there are any.
type lobby struct {
	mu        sync.Mutex
	seats     map[uuid.UUID]*seat // by what is waited for
	tenants   map[uuid.UUID]int   // how many requests of each wait
	total     int
	listening bool
}

// seat is a run or import that requests wait for.
type seat struct {
	tenant, id uuid.UUID
	waiting    int
	ended      chan struct{} // closed when it has, or when that cannot be told

	looking sync.Mutex
	found   any
}

func (l *lobby) enter(store *postgres.Store, tenant, id uuid.UUID) (*seat, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seats == nil {
		l.seats, l.tenants = map[uuid.UUID]*seat{}, map[uuid.UUID]int{}
	}
	s := l.seats[id]
	switch {
	case s != nil && s.waiting >= maxWaitForOne:
		return nil, Fail(tenantBusy, "%d requests wait for this already: try again after Retry-After, or without wait",
			maxWaitForOne)
	case l.tenants[tenant] >= maxWaitOfTenant:
		return nil, Fail(tenantBusy, "%d requests of the tenant wait already: try again after Retry-After, or without "+
			"wait", maxWaitOfTenant)
	case l.total >= maxWaitOfProcess:
		return nil, Fail("over_capacity", "%d requests wait here already: try again after Retry-After, or without wait",
			maxWaitOfProcess)
	}
	if s == nil {
		s = &seat{tenant: tenant, id: id, ended: make(chan struct{})}
		l.seats[id] = s
	}
	s.waiting++
	l.tenants[tenant]++
	l.total++
	waitingRequests.Inc()
	if !l.listening {
		l.listening = true
		go l.listen(store)
	}
	return s, nil
}

const tenantBusy = "tenant_busy"

func (l *lobby) leave(s *seat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waitingRequests.Dec()
	l.total--
	s.waiting--
	if l.tenants[s.tenant]--; l.tenants[s.tenant] == 0 {
		delete(l.tenants, s.tenant)
	}
	if s.waiting == 0 && l.seats[s.id] == s {
		delete(l.seats, s.id)
	}
}

// release tells those who wait for a run or import that it has ended.
func (l *lobby) release(id uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.seats[id]; s != nil {
		delete(l.seats, id) // who comes now looks first
		close(s.ended)
	}
}

func (l *lobby) wakeAll() {
	for _, ids := range l.awaited() {
		for _, id := range ids {
			l.release(id)
		}
	}
}

// awaited returns what is waited for, by tenant.
func (l *lobby) awaited() map[uuid.UUID][]uuid.UUID {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make(map[uuid.UUID][]uuid.UUID, len(l.tenants))
	for id, s := range l.seats {
		ids[s.tenant] = append(ids[s.tenant], id)
	}
	return ids
}

// listen wakes those who wait until nobody does. Without the database it tries again, about once a second.
func (l *lobby) listen(store *postgres.Store) {
	ctx := context.Background() // it outlives the request that it was started by
	for !l.empty() {
		ends, err := store.ListenForEnds(ctx)
		if err == nil {
			err = l.hear(ctx, ends)
			ends.Close(ctx)
		}
		if err != nil {
			time.Sleep(time.Second)
		}
	}
}

// hear returns when nobody waits any more, or with an error when the connection is lost.
func (l *lobby) hear(ctx context.Context, ends *postgres.EndListener) error {
	pace := netPace
	if ends.Deaf() {
		pace = deafPace
	}
	idle := false
	for looked := (time.Time{}); ; {
		if time.Since(looked) >= pace {
			looked = time.Now()
			awaited := l.awaited()
			if len(awaited) == 0 && idle {
				return nil // nobody has waited for two rounds
			}
			idle = len(awaited) == 0
			live, err := ends.Live(ctx, awaited)
			if err != nil {
				return err
			}
			l.wakeOthers(awaited, live)
		}
		id, err := ends.Next(ctx, pace-time.Since(looked))
		if err != nil {
			return err
		}
		l.release(id)
	}
}

// wakeOthers wakes those who wait for what is not live any more.
func (l *lobby) wakeOthers(awaited map[uuid.UUID][]uuid.UUID, live []uuid.UUID) {
	lives := make(map[uuid.UUID]bool, len(live))
	for _, id := range live {
		lives[id] = true
	}
	for _, ids := range awaited {
		for _, id := range ids {
			if !lives[id] {
				l.release(id)
			}
		}
	}
}

// empty reports whether nobody waits, and that the one who listens stops then.
func (l *lobby) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listening = l.total > 0
	return !l.listening
}
