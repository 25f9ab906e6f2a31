package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// errDied is recorded of an attempt whose worker died. It says what most often kills one.
var errDied = errors.New("the worker died while it compacted the session: was it out of memory?")

// takeOver makes a job available that nobody has. The death of another worker counts against the session that it was
// compacting.
func (l *lease) takeOver(ctx context.Context, job queue.Running) error {
	died := job.Worker != l.id
	switch {
	case died && job.Kind == queue.CompactArgs{}.Kind():
		return l.compactDied(ctx, job)
	case died && l.features.Died[job.Kind] != nil:
		taken, err := l.store.ReleaseJob(ctx, job, false)
		if err != nil || !taken {
			return err
		}
		return l.features.Died[job.Kind](ctx, l.store, job, fmt.Errorf("%w", errDied))
	}
	taken, err := l.store.ReleaseJob(ctx, job, died && job.Last)
	if taken && died {
		l.sayTaken(ctx, job)
	}
	return err
}

func (l *lease) sayTaken(ctx context.Context, job queue.Running) {
	l.log.WarnContext(ctx, "a worker died: its job is taken over",
		"worker", job.Worker, "kind", job.Kind, "job", job.ID, "attempt", job.Attempt)
}

func (l *lease) compactDied(ctx context.Context, job queue.Running) error {
	var args queue.CompactArgs
	if err := json.Unmarshal(job.Args, &args); err != nil {
		return err
	}
	a := postgres.Attempt{
		Key: session.Key{Tenant: args.Tenant, Key: args.Session}, Run: args.Run, Job: job.ID, Number: job.Attempt,
	}
	retry, taken, err := l.store.RunDied(ctx, a, job, errDied.Error())
	switch {
	case !taken:
	case retry.Deaths == 0: // it had not begun
		l.sayTaken(ctx, job)
	default:
		report(ctx, l.log, a, postgres.Failure{Class: session.FailureDeath, Reason: errDied.Error()}, retry)
	}
	return err
}
