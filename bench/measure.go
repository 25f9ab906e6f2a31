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

// comparison is something measured and its floor: the least that any implementation on this database must do.
type comparison struct {
	name, unit  string
	goal        *goal
	ours, floor sample
}

func (b *bench) wants(name string) bool { return b.match.MatchString(name) }

// compare interleaves rounds of ours and of the floor, so that whatever else the machine does meets both, and keeps the
// medians.
func (b *bench) compare(ctx context.Context, c comparison) error {
	b.progress("%s", c.name)
	if _, err := c.ours(ctx, b.round/4); err != nil { // warms connections, plans and caches
		return err
	}
	var ours, floors []float64
	for range b.rounds {
		for _, side := range []struct {
			measure sample
			values  *[]float64
		}{{c.ours, &ours}, {c.floor, &floors}} {
			value, err := side.measure(ctx, b.round)
			if err != nil {
				return err
			}
			*side.values = append(*side.values, value)
		}
	}
	b.add(row{Name: c.name, Value: median(ours), Unit: c.unit, Goal: c.goal}.beside(median(floors)))
	return nil
}

// load lets callers do their work over and over for d and returns how often a second they did it. step makes what one
// caller repeats; the first error ends all.
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

func median(values []float64) float64 { return percentile(values, 0.5) }

// percentile is the nearest-rank percentile: a value that was measured, never one between two.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(p*float64(len(sorted)) + 0.999999)
	return sorted[max(0, rank-1)]
}
