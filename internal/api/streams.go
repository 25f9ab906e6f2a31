package api

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

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
)

// How many streams of events a tenant may have in this process, and all tenants.
const (
	maxStreamsOfTenant  = 64
	maxStreamsOfProcess = 2048
)

// lookEvery is how often the process looks for news of the tenants that have streams, in one round trip for all.
const lookEvery = 500 * time.Millisecond

var openStreams = promauto.NewGauge(prometheus.GaugeOpts{
	Name: "varve_event_streams", Help: "Streams of events that are open.",
})

// streams knows who follows events, and tells them that there are some. One goroutine looks while there are any.
type streams struct {
	store   *postgres.Store
	log     *slog.Logger
	stopped chan struct{} // closed when all streams must end
	stop    sync.Once

	mu      sync.Mutex
	tenants map[uuid.UUID]*followed
	total   int
	looking bool
}

// followed is a tenant whose events are followed.
type followed struct {
	head   int64 // that its streams were told about
	places map[*streamPlace]struct{}
}

// streamPlace is one stream's.
type streamPlace struct {
	tenant uuid.UUID
	news   chan struct{} // has a token if there may be events
}

func newStreams(store *postgres.Store, log *slog.Logger) *streams {
	return &streams{store: store, log: log, stopped: make(chan struct{}), tenants: map[uuid.UUID]*followed{}}
}

// enter returns a place for a stream of a tenant, which has news at once; a *request.Failure if there are too many.
func (s *streams) enter(tenant uuid.UUID) (*streamPlace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.tenants[tenant]
	switch {
	case of != nil && len(of.places) >= maxStreamsOfTenant:
		return nil, request.Fail("tenant_busy", "the tenant has %d streams of events here already: close some, or "+
			"read pages (without Accept: text/event-stream)", maxStreamsOfTenant)
	case s.total >= maxStreamsOfProcess:
		return nil, request.Fail("over_capacity", "there are %d streams of events here already: try again after "+
			"Retry-After, or read pages (without Accept: text/event-stream)", maxStreamsOfProcess)
	case of == nil:
		of = &followed{places: map[*streamPlace]struct{}{}}
		s.tenants[tenant] = of
	}
	place := &streamPlace{tenant: tenant, news: make(chan struct{}, 1)}
	place.tell()
	of.places[place] = struct{}{}
	s.total++
	openStreams.Inc()
	if !s.looking {
		s.looking = true
		go s.look()
	}
	return place, nil
}

func (s *streams) leave(place *streamPlace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	openStreams.Dec()
	s.total--
	of := s.tenants[place.tenant]
	delete(of.places, place)
	if len(of.places) == 0 {
		delete(s.tenants, place.tenant)
	}
}

func (p *streamPlace) tell() {
	select {
	case p.news <- struct{}{}:
	default: // it has not read the last news yet
	}
}

// again lets all streams of a tenant be told at the next look.
func (s *streams) again(tenant uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.tenants[tenant]; of != nil {
		of.head = -1
	}
}

// look tells streams about new events until there is no stream.
func (s *streams) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for range tick.C {
		tenants := s.followed()
		if len(tenants) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		heads, err := s.store.EventHeads(ctx, tenants)
		cancel()
		if err != nil {
			s.log.LogAttrs(ctx, slog.LevelDebug, "streams of events wait for the database", slog.Any("error", err))
			continue
		}
		s.told(heads)
	}
}

// followed returns the tenants that have streams; none ends the looking.
func (s *streams) followed() []uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking = len(s.tenants) > 0
	return slices.Collect(maps.Keys(s.tenants))
}

func (s *streams) told(heads map[uuid.UUID]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tenant, of := range s.tenants {
		if heads[tenant] == of.head {
			continue
		}
		of.head = heads[tenant]
		for place := range of.places {
			place.tell()
		}
	}
}

// end ends all streams.
func (s *streams) end() { s.stop.Do(func() { close(s.stopped) }) }
