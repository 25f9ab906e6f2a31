package request

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// grace is how long an answer may take when the waiting is over.
const grace = 30 * time.Second

// Waiter waits for the work of other processes.
type Waiter struct {
	Store    *postgres.Store
	Draining *atomic.Bool // the process stops: nobody waits any more
}

// Compact requests a run and returns it when it has ended, or as it is when the time is up, and whether an earlier
// request with the same Idempotency-Key got it. A run that was in progress already may have begun before the newest
// messages: then Compact requests another one and returns that.
func (w *Waiter) Compact(req *Request, at session.Address, limit time.Duration) (session.Run, bool, error) {
	run, replayed, err := w.Store.Compact(req.Ctx, at, req.Idempotency())
	if err != nil || limit == 0 {
		return run, replayed, err
	}
	up := time.Now().Add(limit)
	ctx, cancel := req.Extend(up)
	defer cancel()
	joined := run.State == session.RunRunning && !replayed
	newest := int64(0)
	if joined {
		found, err := w.Store.Session(ctx, at)
		if err != nil {
			return run, replayed, err
		}
		newest = found.LastSeq
	}
	run, err = w.Await(ctx, at, run, up)
	covers := run.Through != nil && *run.Through >= newest
	if err == nil && joined && run.State.Ended() && !covers && time.Now().Before(up) {
		if run, _, err = w.Store.Compact(ctx, at, nil); err == nil {
			run, err = w.Await(ctx, at, run, up)
		}
	}
	return run, replayed, err
}

// Await waits until a run has ended or the time is up, and returns the run as it is then.
func (w *Waiter) Await(ctx context.Context, at session.Address, run session.Run, up time.Time) (session.Run, error) {
	return Until(ctx, w, run, up, func(run session.Run) bool { return run.State.Ended() },
		func() (session.Run, error) { return w.Store.Run(ctx, at, run.ID) })
}

// Extend lets a request and its answer take until up and a grace, whatever their deadlines were.
func (req *Request) Extend(up time.Time) (context.Context, context.CancelFunc) {
	req.WriteBy(up.Add(grace))
	return context.WithDeadline(req.R.Context(), up.Add(grace))
}

// Until looks again at what was found until it has ended, the time is up or the process stops, which would wait for
// this request. It looks often at first, because most work is quick.
func Until[T any](
	ctx context.Context, w *Waiter, found T, up time.Time, ended func(T) bool, look func() (T, error),
) (T, error) {
	const maxPause = 250 * time.Millisecond
	timeout := time.After(time.Until(up))
	for pause := 10 * time.Millisecond; !ended(found) && !w.Draining.Load(); pause = min(pause*3/2, maxPause) {
		select {
		case <-time.After(pause):
		case <-timeout:
			return found, nil
		case <-ctx.Done():
			return found, ctx.Err()
		}
		var err error
		if found, err = look(); err != nil {
			return found, err
		}
	}
	return found, nil
}
