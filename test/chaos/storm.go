package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// chosen returns the faults that the options ask for, in an order that does not depend on the process.
func (r *rig) chosen() ([]fault, error) {
	wanted := strings.Split(r.options.only, ",")
	all := faults()
	switch {
	case r.options.disk:
		all = ofDisks()
	case r.options.clock != "":
		all = ofClocks()
	case r.options.users > 0:
		all = append(all, fault{name: "failover to a standby", begin: failover},
			fault{name: "password rotated", begin: rotatePasswords})
	}
	all = slices.DeleteFunc(all, func(f fault) bool {
		return !slices.ContainsFunc(wanted, func(text string) bool { return strings.Contains(f.name, text) })
	})
	slices.SortFunc(all, func(a, b fault) int { return strings.Compare(a.name, b.name) })
	if len(all) == 0 {
		return nil, fmt.Errorf("no fault's name contains %q", r.options.only)
	}
	return all, nil
}

// storm brings faults at random, two at a time.
func (r *rig) storm(ctx context.Context) error {
	all, err := r.chosen()
	if err != nil {
		return err
	}
	over, cancel := context.WithTimeout(ctx, r.options.lasts)
	defer cancel()
	if r.options.mutant != "" {
		context.AfterFunc(r.found.something, cancel) // one is enough
	}
	failed := make([]error, 2)
	var both sync.WaitGroup
	for lane := range failed {
		both.Go(func() {
			random := rand.New(rand.NewPCG(r.options.seed, uint64(1<<30+lane)))
			for over.Err() == nil && failed[lane] == nil {
				failed[lane] = r.bring(ctx, all[random.IntN(len(all))], random)
				sleep(over, time.Duration(500+random.IntN(2500))*time.Millisecond)
			}
		})
	}
	both.Wait()
	return errors.Join(failed...)
}

// bring brings one fault, waits as long as it lasts, and ends it.
func (r *rig) bring(ctx context.Context, f fault, random *rand.Rand) error {
	r.progress.Tell("%s", f.name)
	r.found.mu.Lock()
	r.found.faults++
	r.found.mu.Unlock()
	end, err := f.begin(ctx, r, random)
	if err != nil {
		r.progress.Tell("%s: %v", f.name, err) // another fault may be in its way
	}
	if end == nil {
		return nil
	}
	sleep(ctx, f.lasts)
	if err := end(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("%s does not end: %w", f.name, err)
	}
	return nil
}

// recovery is how a fault went.
type recovery struct {
	name                string
	lasted              time.Duration
	gap                 time.Duration // the longest time without an acknowledged append until all was well
	appended, compacted time.Duration // from its end until the next that succeeded
	err                 error
}

// eachAlone brings each fault alone, and measures how soon all is well again.
func (r *rig) eachAlone(ctx context.Context) error {
	all, err := r.chosen()
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(r.options.seed, 1<<31))
	for _, f := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.found.resetGap()
		began := time.Now()
		if err := r.bring(ctx, f, random); err != nil {
			return err
		}
		ended := time.Now()
		back := r.awaitCompaction(ctx, ended)
		back.name, back.lasted = f.name, ended.Sub(began)
		back.gap = r.found.resetGap()
		r.found.table = append(r.found.table, back)
		if back.err != nil {
			r.progress.Tell("late: %v", back.err)
			r.found.add("late", "after %s: %v", f.name, back.err)
		}
	}
	return nil
}

// awaitCompaction waits until, after a moment, an append and a compaction have succeeded and no session is over its
// hard limit. Longer than patience is an error.
func (r *rig) awaitCompaction(ctx context.Context, since time.Time) (back recovery) {
	acks := r.found.appends.Load()
	var over string
	for time.Since(since) < r.options.patience && ctx.Err() == nil {
		sleep(ctx, 50*time.Millisecond)
		if back.appended == 0 && r.found.appends.Load() > acks {
			back.appended = time.Since(since)
		}
		var compacted bool
		over = ""
		err := r.database.pool().QueryRow(ctx, `
			SELECT EXISTS (
			       SELECT
			         FROM runs
			        WHERE state = 'done' AND finished_at BETWEEN now() - $1::interval AND now()),
			       coalesce((
			       SELECT string_agg(id || ' has ' || context_tokens, ', ')
			         FROM sessions
			        WHERE context_tokens > 0.95 * window_tokens), '')`, time.Since(since)).Scan(&compacted, &over)
		if err != nil {
			over = err.Error()
			continue
		}
		if compacted && over == "" && back.appended > 0 {
			back.compacted = time.Since(since)
			return back
		}
	}
	back.compacted = time.Since(since)
	back.err = fmt.Errorf("no append, no compaction, or a session over its hard limit %.1f s after its end: %s",
		time.Since(since).Seconds(), over)
	return back
}
