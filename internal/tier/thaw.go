package tier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

var thawsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "varve_cold_thaws_total", Help: "Cold sessions that this process has brought back, or tried to, by outcome.",
}, []string{"outcome"})

var thawSeconds = promauto.NewHistogram(prometheus.HistogramOpts{
	Name:    "varve_cold_thaw_seconds",
	Help:    "How long it took to bring a cold session back.",
	Buckets: []float64{.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60},
})

// The times of a thaw: how long somebody waits for it, how long it may take, and how long it takes at most to record
// that it has failed.
const (
	wait    = 10 * time.Second
	timeout = 5 * time.Minute
	record  = 10 * time.Second
)

// Thawer brings cold sessions back for those who use them.
type Thawer struct {
	Store  *postgres.Store
	Log    *slog.Logger
	Memory *admit.Gate       // bytes; nil is without a bound
	Trace  func(step string) // called after each step; nil is not
	Wait   time.Duration     // how long somebody waits for a session; 10 seconds
}

// Use brings back a session that somebody uses: it stays until it has slept again. It does nothing to one that is not
// cold. If a session takes longer than somebody should wait, its thaw continues meanwhile.
//
// Errors: ErrNotFound if there is no such session; ErrThawing if it is not back yet; those of admit.Gate.Acquire.
func (t *Thawer) Use(ctx context.Context, key session.Key) error { return t.thaw(ctx, key, true) }

// Read brings back a session, if it is cold, for work that reads many: it is frozen again soon. It does nothing to one
// that there is not.
//
// Errors: those of Use, ErrNotFound aside.
func (t *Thawer) Read(ctx context.Context, key session.Key) error {
	state, err := t.Store.ColdState(ctx, key)
	if err == nil && state != "" {
		err = t.thaw(ctx, key, false)
	}
	if errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	return err
}

func (t *Thawer) thaw(ctx context.Context, key session.Key, used bool) error {
	limit := t.Wait
	if limit == 0 {
		limit = wait
	}
	up := time.NewTimer(limit)
	defer up.Stop()
	for {
		found, err := BeginThaw(ctx, t.Store, key, used)
		if err != nil {
			return err
		}
		if !found.Wait && found.Archive == uuid.Nil {
			return nil
		}
		done := make(chan error, 1)
		if found.Wait {
			go func() { done <- t.await(ctx, key) }()
		} else {
			go func() { done <- t.restore(context.WithoutCancel(ctx), key, found.Archive) }()
		}
		select {
		case err := <-done:
			if err != nil && !moved(err) {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-up.C:
			return fmt.Errorf("%w: it has taken %v so far", session.ErrThawing, limit)
		}
	}
}

// moved reports whether an attempt was stopped because another has begun, or has to begin.
func moved(err error) bool {
	return errors.Is(err, session.ErrEnded) || errors.Is(err, session.ErrNotFound) ||
		errors.Is(err, ErrMoved)
}

// await waits until a session that another brings back is there, or is not on its way any more.
func (t *Thawer) await(ctx context.Context, key session.Key) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		state, err := t.Store.ColdState(ctx, key)
		if err != nil || state != session.Restoring {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// restore does one attempt at a thaw that this process has begun.
func (t *Thawer) restore(ctx context.Context, key session.Key, archive uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	work, err := Start(ctx, t.Store, key, archive, true)
	if err != nil {
		return err
	}
	err = t.attemptThaw(ctx, work)
	if errors.Is(err, session.ErrResultStore) {
		err = fmt.Errorf("%w: %w", session.ErrThawing, err)
	}
	return err
}

// attemptThaw does one attempt at a thaw. If that of a cold session fails, the session is cold again, so that the next
// request tries at once.
func (t *Thawer) attemptThaw(ctx context.Context, work *Work) error {
	began := time.Now()
	err := t.thawOnce(ctx, work)
	switch {
	case !work.Cold || moved(err):
		return err
	case err == nil:
		thawsTotal.WithLabelValues("back").Inc()
		thawSeconds.Observe(time.Since(began).Seconds())
		return nil
	}
	thawsTotal.WithLabelValues("failed").Inc()
	t.Log.ErrorContext(ctx, "a cold session does not come back", "tenant", work.Tenant, "session_key", work.Key.Key,
		"error", err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), record)
	defer cancel()
	_ = work.fail(ctx, err) // else a worker takes over
	return err
}

// thawOnce restores a session when there is memory for it. A panic would end the process: no request waits for the
// goroutine.
func (t *Thawer) thawOnce(ctx context.Context, work *Work) (err error) {
	turn, err := t.Memory.Acquire(ctx, work.Tenant, min(weight(work.stored), t.Memory.Size()))
	if err != nil {
		return err
	}
	defer turn.Done()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return work.Thaw(ctx, t.trace)
}

func (t *Thawer) trace(step string) {
	if t.Trace != nil {
		t.Trace(step)
	}
}

// The memory of a thaw: a part, compressed and not, and the rows of a transaction.
const (
	leastWeight = 1 << 20
	mostWeight  = 32 << 20
)

func weight(stored int64) int64 { return min(max(16*stored, leastWeight), mostWeight) }
