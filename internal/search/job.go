package search

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
)

const (
	// indexSlice is how long a tenant's messages are indexed before those of other tenants have their turn, and
	// nextSlice how long it waits until it has another one.
	indexSlice = 5 * time.Second
	nextSlice  = time.Second

	// indexMemory is about what a job takes: it reads some messages, or a large one, unpacks them and cuts their texts.
	indexMemory = 48 << 20
)

// task is that of tenants with sessions whose messages the search does not find yet.
const task postgres.TaskKind = "index"

// indexArgs name a tenant whose messages are indexed.
type indexArgs struct {
	Tenant uuid.UUID `json:"tenant" river:"unique"`
}

// Kind returns the job's name in River's tables.
func (indexArgs) Kind() string { return "index" }

// InsertOpts allows one live job for each tenant. The sweep asks again if it fails too often.
func (indexArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: "search", Priority: queue.LowestPriority, MaxAttempts: 4, UniqueOpts: queue.OneLive}
}

// jobs adds the job of the search to a worker.
func jobs(w *feature.Worker) {
	s := store{w.Store}
	river.AddWorker(w.Workers, &indexWorker{indexer: indexer{store: s, rest: w.Rest, log: w.Log}})
	w.Queues["search"] = river.QueueConfig{MaxWorkers: 1}
	w.Memory[indexArgs{}.Kind()] = indexMemory
	w.Duties = append(w.Duties, postgres.Duty{
		Kind: task, Job: indexArgs{}.Kind(), Do: s.requeueIndex, Needed: `
			EXISTS (SELECT FROM search_sessions WHERE tenant_id = $1 AND due_since IS NOT NULL)`,
	})
}

type indexWorker struct {
	river.WorkerDefaults[indexArgs]
	indexer
}

// Work indexes messages and uploaded results of a tenant that it is time for, until its own is over. Then it sleeps
// until the next session rests.
func (w *indexWorker) Work(ctx context.Context, job *river.Job[indexArgs]) error {
	done, err := w.tenant(ctx, job.Args.Tenant, time.Now().Add(indexSlice))
	if err != nil {
		return err
	}
	wait, more := nextSlice, true
	if done {
		wait, more, err = w.store.nextRest(ctx, job.Args.Tenant, w.rest, job.ID)
	}
	if err == nil && more {
		err = river.JobSnooze(max(wait, nextSlice))
	}
	return err
}
