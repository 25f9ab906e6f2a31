package budget

import (
	"context"
	"math"

	"github.com/google/uuid"
)

// Do does work of a tenant that weighs so many processors, and waits for them first.
//
// Errors: those of Acquire, and of work.
func (b *Budget) Do(ctx context.Context, tenant uuid.UUID, weight int64, work func() error) error {
	if b == nil || weight <= 0 {
		return work()
	}
	release, err := b.Acquire(ctx, tenant, weight)
	if err != nil {
		return err
	}
	defer release()
	return work()
}

// Continue does the next step of work that has begun, as Do does. It waits as long as its context, however much of the
// tenant's work waits: to refuse it now would throw away what was done.
//
// Errors: the context's, and of work.
func (b *Budget) Continue(ctx context.Context, tenant uuid.UUID, weight int64, work func() error) error {
	if b == nil || weight <= 0 {
		return work()
	}
	w, err := b.enqueue(tenant, min(weight, b.total), math.MaxInt)
	if err == nil {
		err = b.wait(ctx, tenant, w, 0)
	}
	if err != nil {
		return err
	}
	defer b.release(tenant, w.weight)
	return work()
}

// lightCount is how many bytes are counted exactly without a share of the processors: some milliseconds.
const lightCount = 32 << 10

// HeavyCount returns how many processors an exact count of a number of bytes weighs, 0 for a light one.
func HeavyCount(bytes int) int64 {
	if bytes <= lightCount {
		return 0
	}
	return 1
}

// lightWork is how many bytes of messages are parsed, rendered or compacted without a share of the processors: some
// milliseconds, as an append of the same size takes.
const lightWork = 256 << 10

// HeavyWork returns how many processors it weighs to read, parse, render or compact a number of bytes, 0 for light
// work. A process keeps a processor for light requests, however much heavy work there is.
func HeavyWork(bytes int64) int64 {
	if bytes <= lightWork {
		return 0
	}
	return 1
}
