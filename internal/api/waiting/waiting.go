// Package waiting lets a request wait for a compaction. Start at Waiter.Run. It owns no tables.
package waiting

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// grace is how long an answer may take when the waiting is over.
const grace = 30 * time.Second

// Waiter waits for runs.
type Waiter struct {
	Store    *postgres.Store
	Draining *atomic.Bool // the process stops: nobody waits any more
}

// Run returns the run when it has ended, or as it is when the time is up. A run that was in progress already may have
// begun before the newest messages: then Run requests another one and returns that.
func (w *Waiter) Run(
	req *request.Request, at session.Address, run session.Run, replayed bool, limit time.Duration,
) (session.Run, error) {
	up := time.Now().Add(limit)
	ctx, cancel := context.WithDeadline(req.R.Context(), up.Add(grace))
	defer cancel()
	req.WriteBy(up.Add(grace))
	if run.State != session.RunRunning || replayed {
		return w.await(ctx, at, run, up)
	}
	found, err := w.Store.Session(ctx, at)
	if err != nil {
		return run, err
	}
	run, err = w.await(ctx, at, run, up)
	if err != nil || !run.State.Ended() || run.Through != nil && *run.Through >= found.LastSeq ||
		!time.Now().Before(up) {
		return run, err
	}
	if run, _, err = w.Store.Compact(ctx, at, nil); err != nil {
		return run, err
	}
	return w.await(ctx, at, run, up)
}

// await reads a run until it ends or the time is up. It reads often at first, because most compactions are quick.
func (w *Waiter) await(ctx context.Context, at session.Address, run session.Run, up time.Time) (session.Run, error) {
	timeout := time.After(time.Until(up))
	for pause := 10 * time.Millisecond; !run.State.Ended(); pause = min(pause*3/2, 250*time.Millisecond) {
		select {
		case <-time.After(pause):
			if w.Draining.Load() {
				return run, nil // the process would wait for this request
			}
		case <-timeout:
			return run, nil
		case <-ctx.Done():
			return run, ctx.Err()
		}
		var err error
		if run, err = w.Store.Run(ctx, at, run.ID); err != nil {
			return run, err
		}
	}
	return run, nil
}
