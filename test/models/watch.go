package main

import (
	"context"
	"time"
)

// watchTransactions looks every 50 ms for transactions that are idle, and remembers the longest.
func (r *rig) watchTransactions(ctx context.Context) {
	for ctx.Err() == nil {
		var longest float64
		var query string
		err := r.pool.QueryRow(ctx, `
			SELECT EXTRACT(epoch FROM clock_timestamp() - state_change)::float8, query
			  FROM pg_stat_activity
			 WHERE state LIKE 'idle in transaction%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()
			 ORDER BY state_change
			 LIMIT 1`).Scan(&longest, &query)
		if err == nil {
			r.found.idle(time.Duration(longest*float64(time.Second)), query)
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// settle waits until every summary has ended and no job of a compaction or a summary is left. Jobs that wait for
// another attempt are called at once: the faults are over.
func (r *rig) settle(ctx context.Context) error {
	for until := time.Now().Add(r.options.settles); ; sleep(ctx, 250*time.Millisecond) {
		_, err := r.pool.Exec(ctx, `
			UPDATE river_job
			   SET state = 'available', scheduled_at = now()
			 WHERE kind IN ('summarise', 'compact') AND state IN ('retryable', 'scheduled')`)
		if err != nil {
			return err
		}
		var jobs, open int
		err = r.pool.QueryRow(ctx, `
			SELECT (SELECT count(*)
			          FROM river_job
			         WHERE kind IN ('summarise', 'compact') AND finalized_at IS NULL),
			       (SELECT count(*)
			          FROM summaries
			         WHERE state IN ('due', 'asking'))`).Scan(&jobs, &open)
		switch {
		case err != nil:
			return err
		case jobs == 0 && open == 0:
			return nil
		case jobs == 0 || time.Now().After(until):
			r.found.add("due", "%d summaries are due or asked for, and %d jobs are left, %v after the last append",
				open, jobs, time.Since(r.loaded).Round(time.Second))
			return nil
		}
	}
}
