package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/shelf"
)

// archiveTimeout bounds one attempt: a session may have a hundred thousand messages, and uploads of gigabytes.
const archiveTimeout = time.Hour

// archiveWorker archives a session, or restores it. An attempt begins anew, and only its last transaction changes what
// the session is: before it, the session is what it was, or archived as it was. It may be killed at any time.
type archiveWorker struct {
	river.WorkerDefaults[queue.ArchiveArgs]
	Store *postgres.Store
	Log   *slog.Logger
	Trace func(step string)
}

// Timeout bounds one attempt.
func (w *archiveWorker) Timeout(*river.Job[queue.ArchiveArgs]) time.Duration { return archiveTimeout }

// Work does one attempt. Its failure is noted where who waits for the session sees it.
func (w *archiveWorker) Work(ctx context.Context, job *river.Job[queue.ArchiveArgs]) error {
	key := session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}
	err := w.attempt(ctx, key, job.Args)
	switch {
	case errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrEnded):
		return nil // there is nothing to do any more, or another attempt does it
	case errors.Is(err, postgres.ErrArchiveMoved):
		return river.JobSnooze(0)
	case err == nil:
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return errors.Join(err, w.Store.FailArchive(ctx, key, job.Args.Archive, err.Error()))
}

func (w *archiveWorker) attempt(ctx context.Context, key session.Key, args queue.ArchiveArgs) error {
	work, err := w.Store.StartArchive(ctx, key, args.Archive, args.Back)
	if err != nil {
		return err
	}
	w.Trace("archive begun")
	if args.Back {
		return w.restore(ctx, work)
	}
	err = w.archive(ctx, work)
	var damaged *session.DamagedError
	switch {
	case errors.As(err, &damaged):
		w.Log.ErrorContext(ctx, "a damaged session is not archived",
			"tenant", key.Tenant, "session_key", key.Key, "error", err)
		return w.Store.CancelArchive(ctx, work, err.Error())
	case errors.Is(err, session.ErrHeld):
		return w.Store.CancelArchive(ctx, work, err.Error())
	}
	return err
}

// archive writes the rows of a session into parts, reads them back, and deletes the rows.
func (w *archiveWorker) archive(ctx context.Context, work *postgres.ArchiveWork) error {
	var at postgres.ArchiveCursor
	for n, done := 0, false; !done; n++ {
		part, err := shelf.NewWriter()
		if err != nil {
			return err
		}
		if done, err = w.Store.FillPart(ctx, work, &at, part); err != nil {
			return err
		}
		made, err := part.End()
		if err != nil {
			return err
		}
		if err := w.Store.AddPart(ctx, work, n, made); err != nil {
			return err
		}
		w.Trace("part added")
	}
	parts, digest, tables, err := w.Store.CheckArchive(ctx, work)
	if err != nil {
		return err
	}
	w.Trace("archive checked")
	objects, err := w.Store.FinishArchive(ctx, work, parts, digest, tables)
	if err != nil {
		return err
	}
	w.Trace("session archived")
	w.Store.ForgetObjects(ctx, work.Tenant, objects)
	w.Trace("objects forgotten")
	return nil
}

// restore checks an archive, brings its rows back, and shows the session.
func (w *archiveWorker) restore(ctx context.Context, work *postgres.ArchiveWork) error {
	if err := w.Store.ExpectWhole(ctx, work); err != nil {
		return err
	}
	w.Trace("archive checked")
	_, _, err := w.Store.EachPart(ctx, work, func(_ int, body []byte) error {
		err := w.Store.RestorePart(ctx, work, body)
		w.Trace("part restored")
		return err
	})
	if err != nil {
		return err
	}
	objects, err := w.Store.FinishRestoring(ctx, work)
	if err != nil {
		return err
	}
	w.Trace("session restored")
	w.Store.ForgetObjects(ctx, work.Tenant, objects)
	w.Trace("objects forgotten")
	return nil
}
