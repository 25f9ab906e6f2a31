package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/admit"
)

// Reads from a standby, in four files beside this one: standby_read.go has the reads of one request, standby_look.go
// whether the standby can be asked, standby_position.go how far the primary has written, standby_wrote.go where this
// process has written.

var (
	standbyReads = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_standby_reads_total",
		Help: "Reads that may go to the standby, by who answered: standby, or primary, and then why.",
	}, []string{"by", "why"})
	standbyUsable = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "varve_standby_usable", Help: "Whether reads go to the standby: 1, or 0 if all go to the primary.",
	})
	standbyLag = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "varve_standby_lag_seconds",
		Help: "How old what the standby shows is at most, to half a second; not known while the primary is away.",
	})
)

// StandbyConfig is how reads go to a standby.
type StandbyConfig struct {
	URL         string
	Connections int
	Wait        time.Duration // how long a read waits for the standby to show what it must
	MaxLag      time.Duration // a standby that is further behind is not asked
	Log         *slog.Logger
}

// Standby is a standby of a store's database, and whether it can be asked now. Its own looks keep that up to date.
type Standby struct {
	StandbyConfig
	pool    *pgxpool.Pool
	primary *pgxpool.Pool
	gate    *admit.Connections
	written primaryPosition
	wrote   writes
	never   atomic.Int64 // a position that the standby did not reach in time, and has not since; 0 for none

	mu       sync.Mutex
	unusable error           // why it is not asked, nil if it is
	timeline int32           // that it follows
	attempts context.Context // of its reads, which end when it becomes unusable
	abandon  context.CancelCauseFunc

	// Of the looks, which come one after the other.
	current   time.Time  // the moment of the newest position that the standby has passed
	notPassed []position // later ones, oldest first

	stop func()
	done chan struct{}
}

// ReadFromStandby lets the reads of requests that Reading was asked for go to a standby, which need not be there yet.
// Errors: ErrPooler for a URL that cannot be used.
func (s *Store) ReadFromStandby(ctx context.Context, config StandbyConfig) error {
	settings, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return fmt.Errorf("URL of the standby: %w", err)
	}
	if err := checkMode(settings.ConnConfig); err != nil {
		return err
	}
	settings.MaxConns = int32(config.Connections)
	settings.MinIdleConns = 1
	settings.ConnConfig.ConnectTimeout = lookTimeout
	settings.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		inUTC(conn)
		return checkServing(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return err
	}
	standby := &Standby{
		StandbyConfig: config, pool: pool, primary: s.pool, unusable: errNotLooked, done: make(chan struct{}),
		gate: admit.NewConnections(config.Connections, 0), wrote: newWrites(),
	}
	standby.written.pool = s.pool
	looking, stop := context.WithCancel(context.WithoutCancel(ctx))
	standby.stop = stop
	standby.look(looking)
	go standby.keepLooking(looking)
	s.standby = standby
	return nil
}

// Close closes the store's connections, those to its standby, too.
func (s *Store) Close() {
	if s.standby != nil {
		s.standby.close()
	}
	s.pool.Close()
}

func (s *Standby) close() {
	s.stop()
	<-s.done
	s.written.await()
	s.written.close(context.Background())
	s.pool.Close()
}

// state returns what reads need to know: which timeline the standby follows, the context of its reads, and an error if
// it is not asked.
func (s *Standby) state() (timeline int32, attempts context.Context, unusable error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeline, s.attempts, s.unusable
}

// becomes sets whether the standby is asked, and logs it if that is new. Reads that are under way there end if it is
// not asked any more.
func (s *Standby) becomes(unusable error, timeline int32) {
	s.mu.Lock()
	before := s.unusable
	s.unusable, s.timeline = unusable, timeline
	switch {
	case unusable != nil && s.abandon != nil:
		s.abandon(unusable)
		s.abandon = nil
	case unusable == nil && s.abandon == nil:
		s.attempts, s.abandon = context.WithCancelCause(context.Background())
	}
	s.mu.Unlock()
	switch {
	case unusable == nil && before != nil:
		standbyUsable.Set(1)
		s.Log.Info("reads go to the standby")
	case unusable != nil && (before == nil || why(before) != why(unusable)):
		standbyUsable.Set(0)
		s.Log.Warn("reads go to the primary and not to the standby", "why", unusable)
	}
}
