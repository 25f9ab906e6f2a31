package tier

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// archiveTimeout bounds one attempt: a session may have a hundred thousand messages, and uploads of gigabytes.
const archiveTimeout = time.Hour

var frozenTotal = promauto.NewCounter(prometheus.CounterOpts{
	Name: "varve_cold_freezes_total", Help: "Sessions that slept and that this process has made cold.",
})

// Worker archives a session, or restores it. An attempt begins anew, and only its last transaction changes what the
// session is: before it, the session is what it was, or archived as it was. It may be killed at any time.
type Worker struct {
	river.WorkerDefaults[queue.ArchiveArgs]
	Thawer
}

// Timeout bounds one attempt.
func (w *Worker) Timeout(*river.Job[queue.ArchiveArgs]) time.Duration { return archiveTimeout }

// Work does one attempt. Its failure is noted where who waits for the session sees it.
func (w *Worker) Work(ctx context.Context, job *river.Job[queue.ArchiveArgs]) error {
	key := session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}
	work, err := Start(ctx, w.Store, key, job.Args.Archive, job.Args.Back)
	begun := err == nil
	if begun {
		w.trace("archive begun")
		err = w.attempt(ctx, work)
	}
	switch {
	case errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrEnded):
		return nil // there is nothing to do any more, or another attempt does it
	case errors.Is(err, ErrMoved):
		return river.JobSnooze(0)
	case err == nil || !begun:
		return err
	case work.Cold && work.back: // it is cold again, and the next request tries
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), record)
	defer cancel()
	return errors.Join(err, work.fail(ctx, err))
}

func (w *Worker) attempt(ctx context.Context, work *Work) error {
	if work.back {
		return w.attemptThaw(ctx, work)
	}
	err := work.Freeze(ctx, w.trace)
	if err == nil && work.Cold {
		frozenTotal.Inc()
	}
	var damaged *session.DamagedError
	if !errors.As(err, &damaged) && !errors.Is(err, session.ErrHeld) {
		return err
	}
	if damaged != nil {
		w.Log.ErrorContext(ctx, "a damaged session is not archived", "tenant", work.Tenant,
			"session_key", work.Key.Key, "error", err)
	}
	return work.cancel(ctx, err)
}
