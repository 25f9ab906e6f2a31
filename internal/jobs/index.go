package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/search"
)

// indexSlice is how long a tenant's messages are indexed before those of other tenants have their turn.
const indexSlice = 5 * time.Second

type indexWorker struct {
	river.WorkerDefaults[queue.IndexArgs]
	search.Indexer
}

// Work indexes messages and uploaded results of a tenant until all are indexed or its time is over.
func (w *indexWorker) Work(ctx context.Context, job *river.Job[queue.IndexArgs]) error {
	var done bool
	err := recovered(func() (err error) {
		done, err = w.Tenant(ctx, job.Args.Tenant, time.Now().Add(indexSlice))
		return err
	})
	if err == nil && !done {
		return river.JobSnooze(nextSlice)
	}
	return err
}
