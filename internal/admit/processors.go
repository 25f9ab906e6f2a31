package admit

import (
	"context"

	"github.com/google/uuid"
)

const (
	// lightCount is how many bytes are counted exactly without a processor's turn: some milliseconds.
	lightCount = 32 << 10
	// lightWork is how many bytes of messages are parsed, rendered or compacted without one: some milliseconds, as an
	// append of the same size takes.
	lightWork = 256 << 10
)

// HeavyCount returns how many processors an exact count of a number of bytes weighs, 0 for a light one.
func HeavyCount(bytes int) int64 {
	if bytes <= lightCount {
		return 0
	}
	return 1
}

// HeavyWork returns how many processors it weighs to read, parse, render or compact a number of bytes, 0 for light
// work. A process keeps a processor for light requests, however much heavy work there is.
func HeavyWork(bytes int64) int64 {
	if bytes <= lightWork {
		return 0
	}
	return 1
}

// Do does work of a weight, and waits for its turn first. Work of no weight is done at once.
//
// Errors: those of Acquire, and of work.
func (g *gate[K]) Do(ctx context.Context, key K, weight int64, work func() error) error {
	if weight <= 0 {
		return work()
	}
	t, err := g.Acquire(ctx, key, weight)
	if err != nil {
		return err
	}
	defer t.Done()
	return work()
}

// Processors are a tenant's of a gate of processors. The zero value divides nothing.
type Processors struct {
	Gate   *Gate
	Tenant uuid.UUID
}

// Step does a step of work that has begun on a number of bytes, and waits for its turn first as long as ctx. The work
// gets its turn, to rest from it.
//
// Errors: the context's, and of work.
func (p Processors) Step(ctx context.Context, bytes int64, work func(*Step) error) error {
	s := &Step{ctx: ctx, of: p, weight: HeavyWork(bytes)}
	if err := s.take(); err != nil {
		return err
	}
	defer s.turn.Done()
	return work(s)
}

// Step is a step of work that has its turn.
type Step struct {
	ctx    context.Context
	of     Processors
	weight int64
	turn   Turn
}

// Rest does what takes no processor, such as waiting for another server, without the turn, and then waits for another
// one. Its only errors are those of the context.
func (s *Step) Rest(other func()) error {
	s.turn.Done()
	other()
	return s.take()
}

func (s *Step) take() (err error) {
	if s.weight > 0 {
		s.turn, err = s.of.Gate.Await(s.ctx, s.of.Tenant, s.weight)
	}
	return err
}
