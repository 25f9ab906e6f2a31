package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/queue"
)

// clockSkew is how far in the future a worker may have renewed its row: the database's clock may be set back.
const clockSkew = time.Second

// Beat is what a worker learns when it renews its row.
type Beat struct {
	Lost    bool            // the others took it for dead, and its jobs
	Slept   bool            // there are jobs for queue.WakeRetries
	Running []queue.Running // the jobs that are this worker's by their rows, and those of dead workers
}

// RegisterWorker makes or renews the row of a worker that begins, or that was taken for dead.
func (s *Store) RegisterWorker(ctx context.Context, id string) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO workers (id)
		VALUES ($1)
		    ON CONFLICT (id) DO UPDATE
		   SET unbroken = now(), renewed_at = now(), dead_at = NULL`, id)
	return err
}

// UnregisterWorker deletes the row of a worker that stopped. Jobs that it could not give back are taken over.
func (s *Store) UnregisterWorker(ctx context.Context, id string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE workers
		   SET dead_at = now()
		 WHERE id = $1`, id)
	return err
}

// WorkerBeat renews the row of a worker, and marks as dead those that did not renew theirs for as long as lease. A
// worker that was late itself marks none before it was punctual for that long: the database may have been away for all.
func (s *Store) WorkerBeat(ctx context.Context, id string, lease time.Duration) (beat Beat, err error) {
	const punctual = `renewed_at BETWEEN now() - $2::interval AND now() + $3::interval`
	var late bool
	err = s.pool.QueryRow(ctx, `
		UPDATE workers
		   SET renewed_at = now(), unbroken = CASE WHEN `+punctual+` THEN unbroken ELSE now() END
		 WHERE id = $1 AND dead_at IS NULL
		RETURNING EXISTS (SELECT FROM workers WHERE id <> $1 AND dead_at IS NULL AND NOT `+punctual+`),
		       `+queue.SleptSQL, id, lease, clockSkew).Scan(&late, &beat.Slept)
	if errors.Is(err, pgx.ErrNoRows) {
		return Beat{Lost: true}, nil
	}
	if err != nil {
		return beat, err
	}
	if late {
		_, err = s.pool.Exec(ctx, `
			UPDATE workers
			   SET dead_at = now()
			 WHERE id <> $1
			   AND dead_at IS NULL
			   AND NOT `+punctual+`
			   AND EXISTS (SELECT FROM workers own WHERE own.id = $1 AND own.unbroken <= now() - $2::interval)`,
			id, lease, clockSkew)
		if err != nil {
			return beat, err
		}
	}
	rows, _ := s.pool.Query(ctx, queue.RunningSQL, id) // CollectRows returns the error
	beat.Running, err = pgx.CollectRows(rows, pgx.RowToStructByName[queue.Running])
	return beat, err
}

// LiveWorkers returns how many workers show that they live.
func (s *Store) LiveWorkers(ctx context.Context) (n int, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT count(*)
		  FROM workers
		 WHERE dead_at IS NULL AND renewed_at > now() - interval '30 seconds'`).Scan(&n)
	return n, err
}

// ForgetWorkers deletes the rows of dead workers whose jobs are all taken over.
func (s *Store) ForgetWorkers(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
		DELETE FROM workers w
		 WHERE w.dead_at < now() - interval '1 minute'
		   AND NOT `+queue.HasRunning(`w.id`))
	return err
}

// TakeOver declares all workers dead, and makes available at once what waits after a failure. No other process may be
// working on the database.
func (s *Store) TakeOver(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE workers
		   SET dead_at = now()
		 WHERE dead_at IS NULL`)
	if err != nil {
		return err
	}
	return queue.TakeOver(ctx, s.pool)
}

// ReleaseJob makes a job available that its worker has no more, or ends it with discard. It reports whether it did: not
// if the job has ended or is another worker's by now.
func (s *Store) ReleaseJob(ctx context.Context, job queue.Running, discard bool) (taken bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		taken, err = s.queue.Release(ctx, tx, job, discard)
		return err
	})
	return taken, err
}
