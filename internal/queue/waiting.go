package queue

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Waiting returns how many jobs of a kind have not ended, and how many of these have failed and are tried again.
func Waiting(ctx context.Context, pool *pgxpool.Pool, kind string) (waiting, failing int, err error) {
	err = pool.QueryRow(ctx, `
		SELECT count(*), count(*) FILTER (WHERE state = 'retryable')
		  FROM river_job
		 WHERE kind = $1 AND state IN (`+liveSQL()+`)`, kind).Scan(&waiting, &failing)
	return waiting, failing, err
}
