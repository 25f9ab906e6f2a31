package cells

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
)

// cleanTime bounds what is done after a move was stopped.
const cleanTime = 30 * time.Second

// freeze has the source's database refuse what the tenant writes, for a time: every transaction begins by asking. It
// returns when those have ended that began before.
func (r *mover) freeze(ctx context.Context) error {
	noted, err := r.From.Pool().Exec(ctx, `
		UPDATE tenant_moves
		   SET state = 'frozen', frozen_until = clock_timestamp() + $2::interval
		 WHERE tenant = $1 AND state = 'copying'`, r.Tenant, r.Freeze)
	if err == nil && noted.RowsAffected() != 1 {
		err = fmt.Errorf("%w: somebody has given the move up", ErrRefused)
	}
	if err != nil {
		return err
	}
	r.step("frozen")
	return r.awaitOlder(ctx, min(frozenWait, r.Freeze/2))
}

// frozenWait is how long transactions are waited for at most while writes are refused: nearly all have ended then,
// because freeze is called after a wait for those that ran before.
const frozenWait = 2 * time.Second

// awaitOlder waits for the end of the clients' transactions that run now: their snapshot may be older than the freeze.
// PostgreSQL's own processes, such as those of autovacuum, write nothing of a tenant.
func (r *mover) awaitOlder(ctx context.Context, atMost time.Duration) error {
	rows, _ := r.From.Pool().Query(ctx, `
		SELECT l.virtualtransaction
		  FROM pg_locks l
		  JOIN pg_stat_activity a ON a.pid = l.pid
		 WHERE l.locktype = 'virtualxid' AND l.pid <> pg_backend_pid()
		   AND a.datname = current_database() AND a.backend_type = 'client backend'`)
	older, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for up := time.Now().Add(atMost); err == nil; {
		var left int
		var backend *string
		err = r.From.Pool().QueryRow(ctx, `
			SELECT count(*), min(format('%s of login %s', l.pid, a.usename))
			  FROM pg_locks l
			  JOIN pg_stat_activity a ON a.pid = l.pid
			 WHERE l.locktype = 'virtualxid' AND l.virtualtransaction = ANY ($1)`, older).Scan(&left, &backend)
		switch {
		case err == nil && left == 0:
			return nil
		case err == nil && time.Now().After(up):
			return fmt.Errorf("%w now: the backend %s has a transaction that began before writes are refused, and "+
				"has not ended in %s (a backup, or somebody in psql?)", ErrRefused, *backend, atMost)
		case err == nil:
			err = sleep(ctx, 5*time.Millisecond)
		}
	}
	return err
}

// awaitNotice waits until every process knows that a tenant moves: reads do not look each time.
func (r *mover) awaitNotice(ctx context.Context) error {
	var left time.Duration
	err := r.From.Pool().QueryRow(ctx, `
		SELECT began_at + $2::interval - clock_timestamp()
		  FROM tenant_moves
		 WHERE tenant = $1`, r.Tenant, postgres.MovesNoticed).Scan(&left)
	if err != nil || left <= 0 {
		return err
	}
	return sleep(ctx, left)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// serve has the source take writes again, unless the destination has the tenant.
func (r *mover) serve(ctx context.Context) error {
	_, err := r.From.Pool().Exec(ctx, `
		UPDATE tenant_moves
		   SET state = 'copying', frozen_until = NULL
		 WHERE tenant = $1 AND state IN ('frozen', 'switching')`, r.Tenant)
	return err
}

// thaw does what serve does after something went wrong, also for a context that is done.
func (r *mover) thaw(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	return errors.Join(cause, r.serve(ctx))
}

// errThawed reports that the time was over before everything was copied.
var errThawed = errors.New("what was left to copy took longer than writes may be refused (--freeze): the source " +
	"takes writes again, and another run continues")

// hold keeps the source from taking writes without a bound, because the destination is about to serve. It fails if the
// time was over: a write may have come in.
func (r *mover) hold(ctx context.Context) error {
	var until time.Time
	err := r.From.Pool().QueryRow(ctx, `
		SELECT frozen_until
		  FROM tenant_moves
		 WHERE tenant = $1 AND state = 'frozen'`, r.Tenant).Scan(&until)
	if err == nil {
		_, err = r.From.Pool().Exec(ctx, `
			UPDATE tenant_moves
			   SET state = 'switching', frozen_until = NULL
			 WHERE tenant = $1 AND state = 'frozen'`, r.Tenant)
	}
	if err != nil {
		return err
	}
	// Only a commit that was seen before the end of the time left no moment for a write.
	var intime bool
	err = r.From.Pool().QueryRow(ctx, `SELECT clock_timestamp() < $1`, until).Scan(&intime)
	if err == nil && !intime {
		err = errThawed
	}
	return err
}
