package queue

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Archiving returns how many jobs that make archives have not ended, and how many of these have failed within the last
// ten minutes and are tried again. Jobs that restore sessions are not counted: they say nothing of the store that new
// archives are put into.
func Archiving(ctx context.Context, pool *pgxpool.Pool) (waiting, failing int, err error) {
	err = pool.QueryRow(ctx, `
		SELECT count(*),
		       count(*) FILTER (WHERE state = 'retryable' AND attempted_at > now() - interval '10 minutes')
		  FROM river_job
		 WHERE kind = $1 AND state IN (`+liveSQL()+`) AND args @> '{"back": false}'`, ArchiveArgs{}.Kind()).
		Scan(&waiting, &failing)
	return waiting, failing, err
}
