package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/verify"
)

type verifyWorker struct {
	river.WorkerDefaults[queue.VerifyArgs]
	verify.Rolling
}

// Work looks at a slice of the sessions of every tenant, in random order, so that none is last every time. What the
// slice has no time for is left to the next one.
func (w *verifyWorker) Work(ctx context.Context, _ *river.Job[queue.VerifyArgs]) error {
	tenants, err := w.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, i := range rand.Perm(len(tenants)) {
		if err := feature.Recovered(func() error { return w.Slice(ctx, tenants[i].ID) }); err != nil {
			failed = append(failed, fmt.Errorf("tenant %s: %w", tenants[i].ID, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}
