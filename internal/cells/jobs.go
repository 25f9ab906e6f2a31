package cells

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// copyJobs inserts the tenant's live jobs at the destination, where they get other numbers, and puts those into the
// rows that name a live job. A job that runs at the source has nothing to write to any more, and starts again there.
func (r *mover) copyJobs(ctx context.Context, from, to pgx.Tx) error {
	if _, err := to.Exec(ctx, `
		CREATE TEMPORARY TABLE moved_jobs ON COMMIT DROP AS
		SELECT id AS was, `+jobColumns+`
		  FROM river_job
		  WITH NO DATA`); err != nil {
		return err
	}
	_, err := stream(ctx, from.Conn().PgConn(), to.Conn().PgConn(), `
		COPY (SELECT id, `+jobColumns+`
		        FROM river_job
		       WHERE args ->> 'tenant' = '`+r.Tenant.String()+`' AND finalized_at IS NULL)
		  TO STDOUT (FORMAT binary)`, `
		COPY moved_jobs FROM STDIN (FORMAT binary)`)
	if err != nil {
		return err
	}
	for _, sql := range []string{
		`ALTER TABLE moved_jobs ADD is_now bigint`,
		`UPDATE moved_jobs
		    SET is_now = nextval('river_job_id_seq'),
		        state = CASE state WHEN 'running' THEN 'available' ELSE state END`,
		`SET LOCAL session_replication_role = origin`, // a trigger gives each its place
		`INSERT INTO river_job (id, ` + jobColumns + `)
		 SELECT is_now, ` + jobColumns + `
		   FROM moved_jobs
		  ORDER BY was`,
		`SET LOCAL session_replication_role = replica`,
	} {
		if _, err := to.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return r.renumberJobs(ctx, to)
}

const jobColumns = `state, attempt, max_attempts, attempted_at, created_at, scheduled_at, priority, args, errors, kind,
	metadata, queue, tags, unique_key, unique_states`

// renumberJobs replaces the numbers of jobs in the rows that ask whether a job lives. 0 is none: the job of this number
// at the destination is another's.
func (r *mover) renumberJobs(ctx context.Context, to pgx.Tx) error {
	for table, which := range map[string]string{
		"due_sessions": ``, "session_failures": ``, "runs": ` AND state IN ('queued', 'running')`,
	} {
		_, err := to.Exec(ctx, `
			UPDATE `+table+` t
			   SET job_id = coalesce((SELECT is_now FROM moved_jobs j WHERE j.was = t.job_id), 0)
			 WHERE tenant_id = $1`+which, r.Tenant)
		if err != nil {
			return err
		}
	}
	return nil
}
