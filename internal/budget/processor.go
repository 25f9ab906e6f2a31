package budget

import (
	"context"
	"math"

	"github.com/google/uuid"
)

// Do does work of a tenant that weighs a number of processors, and waits for them first.
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
	h := &Held{ctx: ctx, of: holder{b, tenant}, weight: weight}
	if err := h.take(); err != nil {
		return err
	}
	defer h.release()
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

type holderKey struct{}

type holder struct {
	budget *Budget
	tenant uuid.UUID
}

// With returns a context whose heavy steps have a tenant's share of the processors of b.
func With(ctx context.Context, b *Budget, tenant uuid.UUID) context.Context {
	return context.WithValue(ctx, holderKey{}, holder{b, tenant})
}

// Step does a step of work on a number of bytes with a share of the processors that ctx is With, as Continue does. In a
// context without one it does the work at once. The work gets what it holds, to rest from it.
func Step(ctx context.Context, bytes int64, work func(*Held) error) error {
	of, _ := ctx.Value(holderKey{}).(holder)
	h := &Held{ctx: ctx, of: of, weight: HeavyWork(bytes)}
	if err := h.take(); err != nil {
		return err
	}
	defer h.release()
	return work(h)
}

// Held is the share of the processors that a step holds.
type Held struct {
	ctx    context.Context
	of     holder
	weight int64
	held   bool
}

// Rest does what takes no processor, such as waiting for another server, without the share, and then takes that again.
// Its only errors are those of the context.
func (h *Held) Rest(other func()) error {
	h.release()
	other()
	return h.take()
}

func (h *Held) take() error {
	if h.of.budget == nil || h.weight == 0 {
		return nil
	}
	w, err := h.of.budget.enqueue(h.of.tenant, h.weight, math.MaxInt)
	if err == nil {
		err = h.of.budget.wait(h.ctx, h.of.tenant, w, 0)
	}
	h.held = err == nil
	if ended := h.ctx.Err(); !h.held && ended != nil {
		return ended
	}
	return err
}

func (h *Held) release() {
	if h.held {
		h.held = false
		h.of.budget.release(h.of.tenant, h.weight)
	}
}
