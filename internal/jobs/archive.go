package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// archiveTimeout bounds one attempt: a session may have a hundred thousand messages, and uploads of gigabytes.
const archiveTimeout = time.Hour

var frozenTotal = promauto.NewCounter(prometheus.CounterOpts{
	Name: "varve_cold_freezes_total", Help: "Sessions that slept and that this process has made cold.",
})

// archiveWorker archives a session, or restores it. An attempt begins anew, and only its last transaction changes what
// the session is: before it, the session is what it was, or archived as it was. It may be killed at any time.
type archiveWorker struct {
	river.WorkerDefaults[queue.ArchiveArgs]
	Store  *postgres.Store
	Thawer *tier.Thawer
	Log    *slog.Logger
	Trace  func(step string)
}

// Timeout bounds one attempt.
func (w *archiveWorker) Timeout(*river.Job[queue.ArchiveArgs]) time.Duration { return archiveTimeout }

// Work does one attempt. Its failure is noted where who waits for the session sees it.
func (w *archiveWorker) Work(ctx context.Context, job *river.Job[queue.ArchiveArgs]) error {
	key := session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}
	work, err := w.Store.StartArchive(ctx, key, job.Args.Archive, job.Args.Back)
	begun := err == nil
	if begun {
		w.Trace("archive begun")
		err = w.attempt(ctx, work)
	}
	switch {
	case errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrEnded):
		return nil // there is nothing to do any more, or another attempt does it
	case errors.Is(err, postgres.ErrArchiveMoved):
		return river.JobSnooze(0)
	case err == nil || !begun:
		return err
	case work.Cold && work.Back: // it is cold again, and the next request tries
		return nil
	}
	ctx, cancel := feature.Recording(ctx)
	defer cancel()
	_, noted := w.Store.FailArchive(ctx, work, err.Error())
	return errors.Join(err, noted)
}

func (w *archiveWorker) attempt(ctx context.Context, work *postgres.ArchiveWork) error {
	if work.Back {
		return w.Thawer.Attempt(ctx, work)
	}
	err := tier.Freeze(ctx, w.Store, work, w.Trace)
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
	objects, err := w.Store.CancelArchive(ctx, work, err.Error())
	w.Store.ForgetObjects(ctx, work.Tenant, objects)
	return err
}
