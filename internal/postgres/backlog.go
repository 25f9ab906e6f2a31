package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/queue"
)

// Backlog is what is to be done, of all tenants.
type Backlog struct {
	Jobs                  []queue.Jobs
	Failing, Quarantined  int // sessions
	OverTrigger, OverHard int // sessions that are due
	Webhooks              Webhooks
	Cold                  int // cold sessions, as the database's statistics say
}

// Webhooks counts webhooks by what they are to get.
type Webhooks struct {
	Idle     int // they have everything
	Waiting  int // events are to be delivered
	Failing  int // nothing was delivered when it was tried last
	Disabled int
}

// webhooksSQL counts the webhooks of all tenants.
const webhooksSQL = `
	SELECT count(*) FILTER (WHERE NOT t.enabled),
	       count(*) FILTER (WHERE t.enabled AND t.failing),
	       count(*) FILTER (WHERE t.enabled AND NOT t.failing AND waits),
	       count(*) FILTER (WHERE t.enabled AND NOT t.failing AND NOT waits)
	  FROM webhook_turns t
	  LEFT JOIN event_heads h ON h.tenant_id = t.tenant_id
	 CROSS JOIN LATERAL (SELECT t.retry_at IS NOT NULL OR coalesce(h.n, 0) > t.through_n AS waits) w`

// coldSQL estimates how many sessions are cold: one index has all archives, the other those that somebody asked for.
// Counting them would read the rows of all tenants.
const coldSQL = `
	SELECT greatest(max(reltuples) FILTER (WHERE relname = 'session_archives_pkey')
	              - greatest(max(reltuples) FILTER (WHERE relname = 'session_archives_newest'), 0), 0)::bigint
	  FROM pg_class
	 WHERE relnamespace = 'public'::regnamespace AND relname IN ('session_archives_pkey', 'session_archives_newest')`

// Backlog reads the backlog, at the login of a worker.
func (s *Store) Backlog(ctx context.Context) (found Backlog, err error) {
	batch := &pgx.Batch{}
	batch.Queue(queue.JobsSQL).Query(func(rows pgx.Rows) error {
		found.Jobs, err = pgx.CollectRows(rows, pgx.RowToStructByName[queue.Jobs])
		return err
	})
	batch.Queue(`
		SELECT count(*) FILTER (WHERE level = $1), count(*) FILTER (WHERE level = $2)
		  FROM due_sessions`, due.Trigger, due.Hard).QueryRow(func(row pgx.Row) error {
		return row.Scan(&found.OverTrigger, &found.OverHard)
	})
	batch.Queue(webhooksSQL).QueryRow(func(row pgx.Row) error {
		w := &found.Webhooks
		return row.Scan(&w.Disabled, &w.Failing, &w.Waiting, &w.Idle)
	})
	batch.Queue(coldSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&found.Cold) })
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return found, err
	}
	for _, jobs := range found.Jobs {
		found.Failing += jobs.Failing
		found.Quarantined += jobs.Quarantined
	}
	return found, nil
}
