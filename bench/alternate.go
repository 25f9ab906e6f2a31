package main

import (
	"context"
	"runtime"
	"syscall"
	"time"
)

// turnTime is how long one side of an alternation works before the other has its turn: long enough for the garbage
// collector to have its share in every turn, short enough that whatever else the machine does meets both sides.
const turnTime = 150 * time.Millisecond

// alternate lets two pieces of work take turns and returns the best time of each, in processor time: on a machine that
// others use, that is what they disturb least.
func (b *bench) alternate(ctx context.Context, ours, floor func() error) (best, least time.Duration, err error) {
	sides := []struct {
		do    func() error
		times int
		best  time.Duration
	}{{do: ours}, {do: floor}}
	for i := range sides {
		once, err := timeOf(1, sides[i].do)
		if err != nil {
			return 0, 0, err
		}
		sides[i].times = 1 + int(turnTime/max(once, time.Microsecond))
	}
	end := time.Now().Add(time.Duration(b.rounds) * b.round)
	for turn := 0; ctx.Err() == nil && (turn < 3 || time.Now().Before(end)); turn++ {
		for i := range sides {
			took, err := timeOf(sides[i].times, sides[i].do)
			if err != nil {
				return 0, 0, err
			}
			if took /= time.Duration(sides[i].times); turn == 0 || took < sides[i].best {
				sides[i].best = took
			}
		}
	}
	return sides[0].best, sides[1].best, ctx.Err()
}

// timeOf is the processor time of the whole process: on one core, that of the work and of the garbage collector. It
// begins with a heap that was collected just now, so that the work pays for its own garbage only.
func timeOf(n int, do func() error) (time.Duration, error) {
	runtime.GC()
	start, err := processorTime()
	if err != nil {
		return 0, err
	}
	for range n {
		if err := do(); err != nil {
			return 0, err
		}
	}
	end, err := processorTime()
	return end - start, err
}

func processorTime() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}

// perSecond is in megabytes.
func perSecond(size int, took time.Duration) float64 { return megabytes(size) / took.Seconds() }

// used is what a piece of work takes from the heap, collected in between or not.
type used struct{ objects, bytes uint64 }

func memoryOf(do func() error) (used, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := do()
	runtime.ReadMemStats(&after)
	return used{objects: after.Mallocs - before.Mallocs, bytes: after.TotalAlloc - before.TotalAlloc}, err
}
