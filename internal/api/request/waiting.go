package request

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// grace is how long an answer may take when the waiting is over.
const grace = 30 * time.Second

// Waiter waits for the work of other processes: any number of requests on one connection.
type Waiter struct {
	Store    *postgres.Store
	Draining *atomic.Bool // the process stops: nobody waits any more

	lobby lobby
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
	return Until(ctx, w, at.Tenant, run.ID, run, up, func(run session.Run) bool { return run.State.Ended() },
		func() (session.Run, error) { return w.Store.Run(ctx, at, run.ID) })
}

// WithRoom waits for the compaction of a session that is over its window, if there is one that starts soon, and then
// answers. The compaction is asked for if the session is due and nobody has.
func (w *Waiter) WithRoom(req *Request, at session.Address, wait time.Duration, answer func() error) error {
	up := time.Now().Add(wait)
	before := req.Ctx
	ctx, cancel := req.Extend(up)
	defer cancel()
	req.Ctx = ctx
	defer func() { req.Ctx = before }() // the request is answered again if the session has become cold meanwhile
	run, err := req.Store.StartingRun(ctx, at, wait)
	if err == nil {
		_, err = w.Await(ctx, at, run, up)
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	return answer()
}

// Extend lets a request and its answer take until up and a grace, whatever their deadlines were.
func (req *Request) Extend(up time.Time) (context.Context, context.CancelFunc) {
	req.WriteBy(up.Add(grace))
	return context.WithDeadline(req.Base, up.Add(grace))
}

// Stop ends all waiting: who waits gets what there is.
func (w *Waiter) Stop() { w.lobby.wakeAll() }

// Until waits for the end of a tenant's run or import and returns it; found is its state as read before. It returns
// early when the time is up, or when the process stops, which would otherwise wait for this request. Waiting costs only
// memory, and all that wait for the same thing share one read of its end.
//
// Errors: those of look; a *Failure if too many wait.
func Until[T any](
	ctx context.Context, w *Waiter, tenant, id uuid.UUID, found T, up time.Time, ended func(T) bool,
	look func() (T, error),
) (T, error) {
	timeout := time.NewTimer(time.Until(up))
	defer timeout.Stop()
	for !ended(found) {
		seat, err := w.lobby.enter(w.Store, tenant, id)
		if err != nil {
			return found, err
		}
		// It may have ended before anybody listened.
		if found, err = look(); err == nil && !ended(found) && !w.Draining.Load() {
			select {
			case <-seat.ended:
				found, err = share(seat, look)
			case <-timeout.C:
				up = time.Time{}
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		w.lobby.leave(seat)
		if err != nil || up.IsZero() || w.Draining.Load() {
			return found, err
		}
	}
	return found, nil
}

// share returns what the first of those who waited for the same thing finds.
func share[T any](s *seat, look func() (T, error)) (found T, err error) {
	s.looking.Lock()
	defer s.looking.Unlock()
	if found, ok := s.found.(T); ok {
		return found, nil
	}
	if found, err = look(); err == nil {
		s.found = found
	}
	return found, err
}
