package main

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// sample measures for about d and returns a rate.
type sample func(ctx context.Context, d time.Duration) (float64, error)

// comparison is something measured and its floor: the least that any implementation must do.
type comparison struct {
	name, unit  string
	goal        *goal
	ours, floor sample
}

func (b *bench) wants(name string) bool { return b.match.MatchString(name) }

// compare measures ours and its floor by turns and keeps the medians.
func (b *bench) compare(ctx context.Context, c comparison) error {
	b.progress("%s", c.name)
	rates, err := alternate(ctx, b.rounds, b.round, c.ours, c.floor)
	if err != nil {
		return err
	}
	b.add(row{Name: c.name, Value: median(rates[0]), Unit: c.unit, Goal: c.goal}.beside(median(rates[1])))
	return nil
}

// alternate lets the sides take turns, so that whatever else the machine does meets all of them, and returns the rates
// of each. Every second turn has the sides in the opposite order. A short turn that does not count comes first: it warms
// connections, plans and caches.
func alternate(ctx context.Context, turns int, d time.Duration, sides ...sample) ([][]float64, error) {
	rates := make([][]float64, len(sides))
	for turn := -1; turn < turns; turn++ {
		length := d
		if turn < 0 {
			length = d / 4
		}
		for i := range sides {
			if turn%2 == 1 {
				i = len(sides) - 1 - i
			}
			rate, err := sides[i](ctx, length)
			if err != nil {
				return nil, err
			}
			if turn >= 0 {
				rates[i] = append(rates[i], rate)
			}
		}
	}
	return rates, ctx.Err()
}

// load lets callers repeat their work for d and returns how often a second they did it. step makes what one caller
// repeats; the first error ends all.
func load(ctx context.Context, d time.Duration, callers int, step func(caller int) func() error) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	steps := make([]func() error, callers)
	for i := range steps {
		steps[i] = step(i)
	}
	var done atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	deadline := start.Add(d)
	for _, do := range steps {
		group.Go(func() {
			n := int64(0)
			for ; ctx.Err() == nil && time.Now().Before(deadline); n++ {
				if err := do(); err != nil {
					cancel(err)
					break
				}
			}
			done.Add(n)
		})
	}
	group.Wait()
	elapsed := time.Since(start).Seconds()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	return float64(done.Load()) / elapsed, nil
}

// turnTime is how long one side of a comparison in this process works before the other has its turn: long enough for the
// garbage collector to have its share in every turn, short enough that whatever else the machine does meets both sides.
const turnTime = 150 * time.Millisecond

// alternateHere lets two pieces of work in this process take turns and returns the best time of each, in processor time:
// that is what other users of the machine disturb least.
func (b *bench) alternateHere(ctx context.Context, ours, floor func() error) (best, bestFloor time.Duration, err error) {
	turns := max(3, int(time.Duration(b.rounds)*b.round/(2*turnTime)))
	rates, err := alternate(ctx, turns, turnTime, processorRate(ours), processorRate(floor))
	if err != nil {
		return 0, 0, err
	}
	seconds := func(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }
	return seconds(slices.Max(rates[0])), seconds(slices.Max(rates[1])), nil
}

// processorRate measures how often the work can be done in a second of this process's processor time: on one core, that
// of the work and of the garbage collector. It begins with a collected heap, so that the work pays for its own garbage
// only.
func processorRate(do func() error) sample {
	return func(ctx context.Context, d time.Duration) (float64, error) {
		runtime.GC()
		start, err := processorTime()
		if err != nil {
			return 0, err
		}
		for n := 1; ; n++ {
			if err := do(); err != nil {
				return 0, err
			}
			end, err := processorTime()
			if took := end - start; err != nil || took >= d || ctx.Err() != nil {
				return float64(n) / max(took, time.Microsecond).Seconds(), err
			}
		}
	}
}

func processorTime() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}

// oneCore makes everything run on one core, the garbage collector too, so that its work counts. It returns a function
// that ends that.
func oneCore() func() {
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}

// perSecond returns megabytes a second.
func perSecond(size int, took time.Duration) float64 { return megabytes(size) / took.Seconds() }

func megabytes[N int | uint64](bytes N) float64 { return float64(bytes) / 1e6 }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// used is what a piece of work allocates in all.
type used struct{ objects, bytes uint64 }

func memoryOf(do func() error) (used, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := do()
	runtime.ReadMemStats(&after)
	return used{objects: after.Mallocs - before.Mallocs, bytes: after.TotalAlloc - before.TotalAlloc}, err
}

func median(values []float64) float64 { return percentile(values, 0.5) }

// percentile returns the nearest-rank percentile: a value that was measured, never one between two.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(p*float64(len(sorted)) + 0.999999)
	return sorted[max(0, rank-1)]
}
