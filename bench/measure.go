package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
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

// alternate lets the sides take turns, so that whatever else the machine does meets all of them, and returns the
// rates of each. Every second turn has the sides in the opposite order. A short turn that does not count comes first:
// it warms connections, plans and caches.
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

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(values []float64) float64 { return percentile(values, 0.5) }

// percentile returns the nearest-rank percentile: a value that was measured, never one between two.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(p*float64(len(sorted)) + 0.999999)
	return sorted[max(0, rank-1)]
}
