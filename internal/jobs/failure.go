package jobs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// classOf returns whose fault it is that an attempt failed which began at a time. An attempt that took too long is the
// session's own fault, unless the database was away meanwhile.
func (l *lease) classOf(ctx context.Context, err error, began time.Time) session.FailureClass {
	cause := context.Cause(ctx)
	switch {
	case cause != nil && !errors.Is(cause, context.DeadlineExceeded): // the process stops, or its lease is lost
		return session.FailureInfrastructure
	case errors.Is(err, context.DeadlineExceeded) && l.healthySince(began):
		return session.FailureOwn
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, session.ErrResultStore), postgres.IsAway(err),
		errors.Is(err, session.ErrThawing), errors.Is(err, session.ErrOverCapacity):
		return session.FailureInfrastructure
	}
	return session.FailureOwn
}

// lostWait is how long a job of this worker that another one has is left to that one.
const lostWait = 10 * time.Second

// retried makes a job that is no compaction wait when the infrastructure failed, which uses up none of its attempts.
func (l *lease) retried(ctx context.Context, job *rivertype.JobRow, err error, began time.Time) error {
	var snooze *rivertype.JobSnoozeError
	if err == nil || errors.As(err, &snooze) || job.MaxAttempts == 1 || ctx.Err() != nil {
		return err // a job that is tried once comes again by itself
	}
	if errors.Is(err, session.ErrResultStore) && !l.features.FromLog[job.Kind] {
		return err // nobody waits for it
	}
	if l.classOf(ctx, err, began) != session.FailureInfrastructure {
		l.log.WarnContext(ctx, "a job failed", "kind", job.Kind, "job", job.ID, "attempt", job.Attempt,
			"of", job.MaxAttempts, "class", session.FailureOwn, "error", brief(err.Error()))
		return err
	}
	return river.JobSnooze(feature.SomeSeconds())
}

// fail records a failed attempt at a compaction and makes its job wait.
func (w *compactWorker) fail(ctx context.Context, a postgres.Attempt, err error, began time.Time) error {
	damaged := errors.Is(err, session.ErrDamaged) // which no repetition mends
	f := postgres.Failure{Class: w.lease.classOf(ctx, err, began), Reason: err.Error(), Final: damaged}
	stopping := ctx.Err() != nil && f.Class == session.FailureInfrastructure
	switch {
	case errors.Is(context.Cause(ctx), errLeaseLost):
		return river.JobSnooze(lostWait)
	case f.Class == session.FailureInfrastructure && !stopping:
		f.Wait = feature.InfrastructureWait(a.Number)
	}
	compactor.CountFailure()
	postgres.CountDamage(err)
	// The time may be up, or the process may be stopping: the failure is recorded all the same.
	recording, cancel := feature.Recording(ctx)
	defer cancel()
	retry, failErr := w.Store.FailRun(recording, a, f)
	switch {
	case errors.Is(failErr, session.ErrNotFound):
		return nil
	case errors.Is(failErr, postgres.ErrTaken):
		return river.JobSnooze(lostWait) // which does nothing to a job that waits
	case failErr != nil: // the database is away: the lease gives the job back when it answers
		return river.JobSnooze(feature.SomeSeconds())
	case stopping:
		return err
	}
	report(recording, w.Log, a, f, retry)
	return river.JobSnooze(retry.Wait) // which does nothing to a job that waits
}

// report logs a failed attempt: an error if it was the last one before a quarantine. The database may be away for
// long: of its failures, the first ones are logged and then one in about a minute.
func report(ctx context.Context, log *slog.Logger, a postgres.Attempt, f postgres.Failure, r postgres.Retry) {
	const first, every = 3, 15
	if f.Class == session.FailureInfrastructure && a.Number > first && a.Number%every != 0 {
		return
	}
	attrs := []any{
		"tenant", a.Tenant, "session", r.Session, "run", a.Run, "attempt", a.Number, "class", f.Class,
		"failures", r.Failures, "deaths", r.Deaths, "next_try", r.Wait.Round(time.Millisecond).String(),
		"error", brief(f.Reason),
	}
	if r.Quarantined {
		log.ErrorContext(ctx, "a compaction failed: the session is quarantined; varve failures lists it", attrs...)
		return
	}
	log.WarnContext(ctx, "a compaction failed", attrs...)
}

// brief returns the first line of an error, without what would be too long for a log.
func brief(text string) string {
	const longest = 300
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), longest)]
}
