package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// admission lets a job begin only when its process has the memory for the session, so that a process that can hold one
// large session does not compact several. A job that waits too long is snoozed, which is not a failed attempt, so that
// another one can use the slot.
type admission struct {
	river.MiddlewareDefaults
	store  *postgres.Store
	thawer *tier.Thawer
	memory *admit.Gate
	window int64 // bytes of the log that a compaction takes in at a time

	features *feature.Worker // what their jobs take
}

func newAdmission(c Config) *admission {
	return &admission{store: c.Store, thawer: c.thawer(), memory: c.Memory, window: c.Window}
}

// comeAgain is how long a job without memory leaves its place to others.
const comeAgain = 2 * time.Second

// packMemory is about what a job takes that packs messages.
const packMemory = 64 << 20

// Work waits for the memory of a job and does it.
func (a *admission) Work(ctx context.Context, job *rivertype.JobRow, do func(context.Context) error) error {
	var of struct{ Tenant, Session uuid.UUID }
	err := json.Unmarshal(job.EncodedArgs, &of)
	ofSession := of.Session != uuid.Nil && job.Kind != (queue.SummariseArgs{}).Kind()
	if err != nil || !ofSession && a.features.Memory[job.Kind] == 0 {
		return do(ctx) // it works in small steps, or waits for a model and must keep no other job from memory
	}
	weight, err := a.weigh(ctx, job.Kind, session.Key{Tenant: of.Tenant, Key: of.Session})
	if err != nil {
		return do(ctx) // which meets the same error, and records it
	}
	turn, err := a.memory.Acquire(ctx, of.Tenant, min(weight, a.memory.Size()))
	if errors.Is(err, session.ErrOverCapacity) {
		return river.JobSnooze(comeAgain)
	}
	if err != nil {
		return err
	}
	defer turn.Done()
	return do(ctx)
}

// weigh returns how much memory a job takes at most.
func (a *admission) weigh(ctx context.Context, kind string, key session.Key) (int64, error) {
	var weight postgres.Weight
	var err error
	switch {
	case kind == queue.CompactArgs{}.Kind():
		weight, err = a.store.Weight(ctx, key)
	case a.features.FromLog[kind]:
		if err = a.thawer.Read(ctx, key); err == nil { // what a cold session weighs is not known
			weight, err = a.store.LogWeight(ctx, key)
		}
	case kind == queue.OffloadArgs{}.Kind():
		return packMemory, nil
	default:
		if size, ok := a.features.Memory[kind]; ok {
			return size, nil
		}
	}
	return compactor.Memory(weight, a.window), err
}

// hold waits for the memory of work that reads all of a session's log, for as long as that takes.
//
// Errors: ErrNotFound, and that of ctx.
func (a *admission) hold(ctx context.Context, key session.Key) (release func(), err error) {
	weight, err := a.store.LogWeight(ctx, key)
	if err != nil {
		return nil, err
	}
	need := min(compactor.Memory(weight, max(weight.Tail, 1)), a.memory.Size())
	for {
		turn, err := a.memory.Acquire(ctx, key.Tenant, need)
		if !errors.Is(err, session.ErrOverCapacity) {
			return turn.Done, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(comeAgain):
		}
	}
}
