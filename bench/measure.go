package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/varve-dev/varve/internal/postgres"
)

// measurement measures a group and adds its rows to the table.
type measurement func(ctx context.Context, b *bench) error

// sample measures for about d and returns a rate.
type sample func(ctx context.Context, d time.Duration) (float64, error)

// loadCase is work that callers repeat over HTTP. It is measured beside its floor, the least that any implementation
// must do, or with -against beside the other checkout.
type loadCase struct {
	name, unit string
	goal       string
	prepare    func(ctx context.Context, s *site) error // makes the sessions that are not there yet
	round      func(s *site) (sample, error)
	floor      func() (sample, error)

	clockGoals []string // of the processor time of a call in ms, by clock; nil if it is not of interest
}

// measureLoads returns what measures those of the cases that are wanted.
func measureLoads(cases func(b *bench) []loadCase) measurement {
	return func(ctx context.Context, b *bench) error {
		for _, c := range cases(b) {
			if !b.match.MatchString(c.name) {
				continue
			}
			b.progress("%s", c.name)
			if err := b.measureLoad(ctx, c); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		return nil
	}
}

func (b *bench) measureLoad(ctx context.Context, c loadCase) error {
	for _, s := range b.sites {
		if err := c.prepare(ctx, s); err != nil {
			return err
		}
	}
	ours, err := c.round(b.here)
	if err != nil {
		return err
	}
	if b.other == nil {
		return b.besideFloor(ctx, c, ours)
	}
	theirs, err := c.round(b.other)
	if err != nil {
		return err
	}
	oursClocks, theirsClocks := b.here.clocks(), b.other.clocks()
	rates, err := alternate(ctx, b.rounds, b.round, timed(ours, oursClocks), timed(theirs, theirsClocks))
	if err != nil {
		return err
	}
	b.add(row{Name: c.name, Unit: c.unit}.pairs(rates[0], rates[1]))
	for i, clock := range oursClocks {
		if old := theirsClocks[i]; len(clock.rates) == len(old.rates) && len(old.rates) > 0 {
			// The first turn warms.
			b.add(row{Name: c.name, Unit: c.unit + " of " + clock.of}.pairs(clock.rates[1:], old.rates[1:]))
		}
	}
	return nil
}

// besideFloor measures a case beside its floor.
func (b *bench) besideFloor(ctx context.Context, c loadCase, ours sample) error {
	clocks := b.here.clocks()
	floor, err := c.floor()
	if err != nil {
		return err
	}
	rates, err := alternate(ctx, b.rounds, b.round, timed(ours, clocks), floor)
	if err != nil {
		return err
	}
	b.add(row{Name: c.name, Unit: c.unit, Goal: c.goal}.pairs(rates[0], rates[1]))
	for i, goal := range c.clockGoals {
		if clock := clocks[i]; len(clock.rates) > 1 { // the first turn warms
			b.add(row{Name: c.name + ": " + clock.of, Unit: "ms", Value: 1000 / median(clock.rates[1:]), Goal: goal})
		}
	}
	return nil
}

// alternate lets the sides take turns, so that whatever else the machine does meets all of them, and returns the
// rates of each. A short turn that does not count comes first: it warms connections, plans and caches.
func alternate(ctx context.Context, turns int, d time.Duration, sides ...sample) ([][]float64, error) {
	rates := make([][]float64, len(sides))
	for turn := -1; turn < turns; turn++ {
		length := d
		if turn < 0 {
			length = d / 4
		}
		err := eachSide(turn, len(sides), func(side int) error {
			rate, err := sides[side](ctx, length)
			if turn >= 0 {
				rates[side] = append(rates[side], rate)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rates, ctx.Err()
}

// eachSide calls do for each side, every second turn in the opposite order.
func eachSide(turn, sides int, do func(side int) error) error {
	for side := range sides {
		if turn%2 == 0 {
			side = sides - 1 - side
		}
		if err := do(side); err != nil {
			return err
		}
	}
	return nil
}

// load lets callers repeat their work for d and returns how often a second they did it. step makes what one caller
// repeats; the first error ends all.
func load(ctx context.Context, d time.Duration, callers int, step func(caller int) func() error) (float64, error) {
	steps := make([]func() error, callers)
	for i := range steps {
		steps[i] = step(i)
	}
	var done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for _, do := range steps {
		group.Go(func() error {
			n := int64(0)
			defer func() { done.Add(n) }()
			for ; ctx.Err() == nil && time.Since(start) < d; n++ {
				if err := do(); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	return float64(done.Load()) / time.Since(start).Seconds(), err
}

// pgxFloor returns a round of the least that a call costs from Go: the store's own statement behind the one for the
// tenant, in one pipeline. of returns the statement of a caller's turn and its arguments.
func (b *bench) pgxFloor(callers int, of func(caller, turn int) (string, []any)) sample {
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, callers, func(caller int) func() error {
			turn := 0
			return func() error {
				turn++
				sql, args := of(caller, turn)
				return b.bareCall(ctx, sql, args)
			}
		})
	}
}

// bareCall throws the rows away as they come.
func (b *bench) bareCall(ctx context.Context, sql string, args []any) error {
	tenantSQL, tenantArgs := postgres.TenantStatement(b.here.tenant)
	batch := &pgx.Batch{}
	batch.Queue(tenantSQL, tenantArgs...)
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		count := 0
		for ; rows.Next(); count++ {
			rows.RawValues()
		}
		if rows.Err() == nil && count != 1 {
			return fmt.Errorf("floor: %d rows instead of 1", count)
		}
		return rows.Err()
	})
	return b.store.Pool().SendBatch(ctx, batch).Close()
}

func median(values []float64) float64 { return percentile(values, 0.5) }

// percentile returns the nearest-rank percentile: a value that was measured, never one between two.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(p*float64(len(sorted)) + 0.999999)
	return sorted[max(0, rank-1)]
}
