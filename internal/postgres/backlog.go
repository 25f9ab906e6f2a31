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
	Cold                  int // cold sessions, as the database's statistics say
}

// coldSQL estimates how many sessions are cold: one index has all archives, the other those that somebody asked for.
// Counting them would read the rows of all tenants.
const coldSQL = `
	SELECT greatest(max(reltuples) FILTER (WHERE relname = 'session_archives_pkey')
	              - greatest(max(reltuples) FILTER (WHERE relname = 'sessions_archived'), 0), 0)::bigint
	  FROM pg_class
	 WHERE relnamespace = current_schema()::regnamespace AND relname IN ('session_archives_pkey', 'sessions_archived')`

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
