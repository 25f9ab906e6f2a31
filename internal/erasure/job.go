package erasure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// erasedAtOnce is how many sessions an erasure looks for at a time.
	erasedAtOnce = 100

	// erasedRows is how many rows of a tenant one transaction deletes.
	erasedRows = 5000

	// unfinishedWait is how long an erasure waits for the last jobs of its sessions, and heldWait how long for the end
	// of a legal hold on a tenant that is to be deleted.
	unfinishedWait = time.Second
	heldWait       = 5 * time.Second
)

// Worker erases the sessions of an erasure one after the other, then their objects, and ends it with a receipt. Each
// step is a transaction of its own, and what is done is not done again: it may be killed at any time.
type Worker struct {
	river.WorkerDefaults[queue.ErasureArgs]
	Objects
	Kept   time.Duration // how long backups are kept; 0 if it is not known
	Slice  time.Duration // how long it erases before other erasures get their turn
	Settle time.Duration // how long after the suspension of a tenant its last requests may still write
}

// Work continues an erasure until it has ended or its slice has.
func (w *Worker) Work(ctx context.Context, job *river.Job[queue.ErasureArgs]) error {
	until := time.Now().Add(w.Slice)
	work, err := Start(ctx, w.Store, job.Args.Tenant, job.Args.Erasure)
	if errors.Is(err, session.ErrEnded) || errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx = audit.With(ctx, &work.by) // what the store does is done in the name of who asked for it
	if work.Kind == session.ErasureOfTenant {
		return w.tenant(ctx, work, until)
	}
	for _, step := range []func(context.Context, *Work, time.Time) (bool, error){w.sessions, w.objects} {
		if done, err := step(ctx, work, until); err != nil || !done {
			return orSnooze(err, 0)
		}
	}
	return w.finish(ctx, work, work.Finish)
}

// orSnooze returns err, or if there is none, the error that makes River run the job again later.
func orSnooze(err error, wait time.Duration) error {
	if err != nil {
		return err
	}
	return river.JobSnooze(wait)
}

// sessions erases sessions until there are none, or the time is over. One that fails does not keep the others of its
// batch.
func (w *Worker) sessions(ctx context.Context, work *Work, until time.Time) (bool, error) {
	for {
		keys, err := work.Next(ctx, erasedAtOnce)
		if err != nil || len(keys) == 0 {
			return err == nil, err
		}
		var failed []error
		for _, key := range keys {
			if time.Now().After(until) {
				return false, errors.Join(failed...)
			}
			if err := work.Erase(ctx, key); err != nil {
				failed = append(failed, fmt.Errorf("session %s: %w", key, err))
				continue
			}
			w.Trace("session erased")
		}
		if len(failed) > 0 {
			return false, errors.Join(failed...)
		}
	}
}

// objects erases what erased sessions have in result stores, in the same way.
func (w *Worker) objects(ctx context.Context, work *Work, until time.Time) (bool, error) {
	for {
		found, err := work.erasedSessions(ctx, erasedAtOnce)
		if err != nil || len(found) == 0 {
			return err == nil, err
		}
		for _, s := range found {
			if time.Now().After(until) {
				return false, nil
			}
			objects, err := w.objectsOf(ctx, session.Key{Tenant: work.tenant, Key: s.Key}, s.Prefixes)
			if err != nil {
				return false, err
			}
			if err := work.ObjectsErased(ctx, s.Key, objects); err != nil {
				return false, err
			}
			w.Trace("objects of a session erased")
		}
	}
}

// objectsOf erases the objects of a session below its own prefix and those of others that held them. Below the prefix
// of another session that is there, what was just put may be named yet: that is left alone. The session shared with
// that one whatever it had there.
func (w *Worker) objectsOf(ctx context.Context, of session.Key, prefixes []uuid.UUID) (objects int, err error) {
	for _, prefix := range prefixes {
		below := session.Key{Tenant: of.Tenant, Key: prefix}
		gone, err := w.Store.IsErased(ctx, below)
		if err != nil {
			return objects, err
		}
		spared := persist.MinGrace
		if gone || prefix == of.Key {
			spared = 0
		}
		n, err := w.eraseBelow(ctx, below, spared)
		objects += n
		if err != nil {
			return objects, err
		}
	}
	return objects, nil
}

// finish ends an erasure with its receipt, unless there is more to do.
func (w *Worker) finish(ctx context.Context, work *Work, end func(context.Context, time.Duration) error) error {
	err := end(ctx, w.Kept)
	switch {
	case errors.Is(err, errUnfinished):
		return river.JobSnooze(unfinishedWait)
	case errors.Is(err, session.ErrEnded):
		return nil
	case err == nil:
		w.Trace("erasure finished")
		w.Log.InfoContext(ctx, "an erasure has ended", "tenant", work.of(), "erasure", work.ID, "kind", work.Kind)
	}
	return err
}
