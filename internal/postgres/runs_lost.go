package postgres

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// runsAtOnce bounds how many runs RequeueRuns looks after.
const runsAtOnce = 1000

// withoutJob is the condition that a run r has not ended and that its job is gone. The job of a run is inserted, and
// ends, in the transaction that writes the run's row; runs of recompactions have jobs of their own. The sweep asks anew
// for sessions that are due, and for no other: one that is due no more may have a run that it was due for.
var withoutJob = `r.state IN ('queued', 'running')
	   AND r.cause <> 'recompaction'
	   AND NOT ` + queue.IsLive(`r.job_id`)

var runsLostSQL = `
	SELECT session_key, id, cause
	  FROM runs r
	 WHERE tenant_id = $1
	   AND ` + withoutJob + `
	 LIMIT ` + strconv.Itoa(runsAtOnce)

// isLostSQL asks again under the lock of the session: another sweep may have given the run a job meanwhile.
var isLostSQL = `
	SELECT EXISTS (
	       SELECT
	         FROM runs r
	        WHERE tenant_id = $1
	          AND id = $2
	          AND ` + withoutJob + `)`

// RequeueRuns inserts a job again for some of a tenant's runs that have lost theirs, and returns how many it looked
// after. A run whose session has another job has failed.
func (s *Store) RequeueRuns(ctx context.Context, tenant uuid.UUID) (found int, err error) {
	type lost struct {
		Session, Run uuid.UUID
		Cause        string
	}
	runs, err := QueryRows(ctx, s, tenant, pgx.RowToStructByPos[lost], runsLostSQL, tenant)
	if err != nil {
		return 0, err
	}
	for _, l := range runs {
		key := session.Key{Tenant: tenant, Key: l.Session}
		err := s.underLock(ctx, key, func(tx pgx.Tx, _ lockedSession) error {
			isLost, err := RowIn(ctx, tx, pgx.RowTo[bool], isLostSQL, tenant, l.Run)
			if err != nil || !isLost {
				return err
			}
			return s.giveJob(ctx, tx, key, l.Run, l.Cause)
		})
		if errors.Is(err, session.ErrNotFound) { // it is gone, or cold
			continue
		}
		if err != nil {
			return found, err
		}
		found++
	}
	return found, nil
}

// giveJob inserts a job for a run that has lost its own. A run whose session has another job has failed.
func (s *Store) giveJob(ctx context.Context, tx pgx.Tx, key session.Key, run uuid.UUID, cause string) error {
	args := queue.CompactArgs{Tenant: key.Tenant, Session: key.Key, Run: run, Manual: cause == causeManual}
	job, inserted, err := s.queue.Insert(ctx, tx, args, time.Time{})
	if err != nil {
		return err
	}
	state, failure := session.RunQueued, (*string)(nil)
	if !inserted {
		state, failure = session.RunFailed, new(jobLost)
	}
	return Exec(ctx, tx, `
		UPDATE runs
		   SET state = $3, error = $4, job_id = $5, started_at = NULL,
		       finished_at = CASE $3 WHEN 'failed' THEN now() END
		 WHERE tenant_id = $1 AND id = $2 AND state IN ('queued', 'running')`, key.Tenant, run, state, failure, job)
}

// jobLost is the error of a run that has ended because its job is gone.
const jobLost = "its job was lost"
