package jobs

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// summariseWorker asks a model for a summary that a checkpoint waits for. Meanwhile it holds no transaction, no lock,
// and nothing of the session but the request. The answers of all calls are kept, so that a job that is taken over from
// a dead worker pays only for what is missing.
type summariseWorker struct {
	river.WorkerDefaults[queue.SummariseArgs]
	Store  *postgres.Store
	Caller *modelcall.Caller // nil: no model is configured
	Log    *slog.Logger
	Limit  time.Duration // of one attempt
	Trace  func(step string)
}

// Timeout returns how long one attempt may take.
func (w *summariseWorker) Timeout(*river.Job[queue.SummariseArgs]) time.Duration { return w.Limit }

// patience is for how long a job waits for a provider that is busy or is left alone. If it would take longer, the
// summary has failed, and a compaction asks for it again when the provider may be asked.
const patience = 15 * time.Minute

// Work asks for one summary and leaves the answer to a compaction. What cannot succeed later fails at once.
func (w *summariseWorker) Work(ctx context.Context, job *river.Job[queue.SummariseArgs]) error {
	id := session.SummaryID{Session: session.Key{Tenant: job.Args.Tenant, Key: job.Args.Session}, Model: job.Args.Model}
	if n, err := hex.Decode(id.Digest[:], []byte(job.Args.Digest)); err != nil || n != len(id.Digest) {
		return river.JobCancel(fmt.Errorf("the digest %q: %w", job.Args.Digest, err))
	}
	w.Trace("summary")
	request, fallback, err := w.begin(ctx, id, job.ID)
	if errors.Is(err, session.ErrNotFound) || err == nil && request == nil {
		return nil // the summary has ended, or the session is gone
	}
	if err != nil {
		return err
	}
	var answer session.SummaryAnswer
	if job.Attempt > queue.SummariseAttempts {
		err = errAttempts // its workers died
	} else if w.Caller == nil {
		err = errNoModels
	} else {
		w.Trace("asking")
		answer, err = w.Caller.Ask(ctx, id.Session.Tenant, id.Session.Key, id.Model, *request)
	}
	if err == nil {
		w.Trace("answered")
		return gone(w.Store.TakeAnswer(ctx, id, answer, job.ID))
	}
	return w.fail(ctx, id, fallback, err, job)
}

var (
	errNoModels = fmt.Errorf("%w: the operator has configured none", summary.ErrFailed)
	errAttempts = fmt.Errorf("%w: the workers that asked it have died", summary.ErrFailed)
)

// gone returns nil in the place of ErrNotFound: nobody waits for the answer any more, and it is kept.
func gone(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// begin returns what is to be asked, and what stands in its place meanwhile; nothing if the session's policy wants
// another model by now, or none.
func (w *summariseWorker) begin(ctx context.Context, id session.SummaryID, job int64) (
	request *summary.Request, fallback policy.Fallback, err error,
) {
	due, err := w.Store.BeginSummary(ctx, id)
	if err != nil {
		return nil, "", err
	}
	document, err := w.Store.PolicyOf(ctx, id.Session)
	if err != nil {
		return nil, "", err
	}
	own, err := policy.Parse(document.Document)
	if err != nil {
		return nil, "", err
	}
	if !own.Enabled || !own.Summarise.Enabled || own.Summarise.Model != id.Model {
		return nil, "", w.Store.DropSummary(ctx, id, job)
	}
	request = &summary.Request{}
	return request, own.Summarise.Fallback, json.Unmarshal(due.Request, request)
}

// fail lets the job wait for another attempt or, if none can succeed or there were enough, ends the summary with the
// reason that its owner sees.
func (w *summariseWorker) fail(
	ctx context.Context, id session.SummaryID, fallback policy.Fallback, err error, job *river.Job[queue.SummariseArgs],
) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return err // the process stops, or the job is another worker's
	}
	wait := later(err)
	if wait > 0 && time.Since(job.CreatedAt)+wait < patience {
		return river.JobSnooze(wait)
	}
	again, transient := modelcall.Again(err, time.Now())
	if !errors.Is(err, summary.ErrFailed) || transient && wait == 0 && job.Attempt < queue.SummariseAttempts {
		return err
	}
	w.Log.WarnContext(ctx, "a model has failed to write a summary", "tenant", id.Session.Tenant,
		"session_key", id.Session.Key, "model", id.Model, "attempts", job.Attempt, "error", brief(err.Error()))
	ctx, cancel := feature.Recording(ctx)
	defer cancel()
	compacts := fallback == policy.DropInstead
	return gone(w.Store.TakeFailure(ctx, id, brief(err.Error()), again, compacts, job.ID))
}

// later returns how long a job waits, without using up an attempt, because the provider limits the rate or is left
// alone, or because another process asks the same; 0 for other errors.
func later(err error) time.Duration {
	var of *llm.Error
	switch {
	case errors.Is(err, session.ErrModelAsked):
		return feature.SomeSeconds()
	case !errors.As(err, &of), !errors.Is(err, llm.ErrLimited) && !errors.Is(err, llm.ErrOpen):
		return 0
	}
	return max(of.RetryAfter, feature.SomeSeconds()) + rand.N(time.Second)
}
