package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// Attempt is a worker's attempt at a session's compaction.
type Attempt struct {
	session.Key
	Run    uuid.UUID
	Job    int64
	Number int // by which River counts; with Job it tells this attempt from another worker's
}

// Failure is how an attempt failed.
type Failure struct {
	Class  session.FailureClass
	Reason string
	Wait   time.Duration // after which it is tried again, if the class is not counted
	Final  bool          // no repetition mends it: the session is quarantined at once
}

// Retry is what a failure leads to.
type Retry struct {
	Session     string // its id
	Wait        time.Duration
	Failures    int // in a row
	Deaths      int
	Quarantined bool
}

// ownWaits are the times from one of a session's own failures to the next attempt.
var ownWaits = [session.MaxFailures - 1]time.Duration{
	time.Second, 4 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, time.Minute, time.Minute,
}

// The times from a quarantine to its trials: the first one, by what led there, and the longest.
const (
	trialAfterFailures = 5 * time.Minute
	trialAfterDeaths   = time.Hour
	longestTrial       = 24 * time.Hour
	trialFactor        = 4
)

// FailRun records why an attempt failed, unless its run has ended: a commit whose answer was lost did happen, and
// another worker of its job may have done the work. It makes the job wait, or quarantines the session. ErrNotFound if
// the session is gone.
func (s *Store) FailRun(ctx context.Context, a Attempt, f Failure) (retry Retry, err error) {
	err = s.underLock(ctx, a.Key, func(tx pgx.Tx, row lockedSession) error {
		retry, err = s.fail(ctx, tx, row, a, f)
		return err
	})
	return retry, err
}

func (s *Store) fail(ctx context.Context, tx pgx.Tx, row lockedSession, a Attempt, f Failure) (retry Retry, err error) {
	retry.Wait = f.Wait
	if f.Class != session.FailureInfrastructure {
		retry, err = countFailure(ctx, tx, a, f)
	}
	if err == nil {
		retry.Session, err = idOf(ctx, tx, a.Key)
	}
	if err != nil {
		return retry, err
	}
	tag := queue.Failing
	if f.Class == session.FailureInfrastructure {
		tag = ""
	}
	ours, err := s.queue.Postpone(ctx, tx, a.Job, a.Number, retry.Wait, tag)
	if err == nil && !ours {
		err = ErrTaken
	}
	if err != nil {
		return retry, err
	}
	if retry.Quarantined {
		err = s.quarantine(ctx, tx, row, a, f, retry)
	} else {
		err = requeueRun(ctx, tx, a, f)
	}
	if err != nil {
		return retry, err
	}
	return retry, emitFailed(ctx, tx, a, f, retry)
}

// emitFailed tells that an attempt failed by the session's fault, and whether that quarantined the session.
func emitFailed(ctx context.Context, tx pgx.Tx, a Attempt, f Failure, retry Retry) error {
	if f.Class == session.FailureInfrastructure {
		return nil
	}
	kind := session.EventFailed
	if retry.Quarantined {
		kind = session.EventQuarantined
	}
	return Emit(ctx, tx, a.Tenant, Happening{Kind: kind, Topic: session.TopicOf(retry.Session), Data: about{
		"run": a.Run, "error": Text(f.Reason), "failures": retry.Failures, "deaths": retry.Deaths,
		"next_try_seconds": int64(retry.Wait.Seconds()),
	}})
}

func idOf(ctx context.Context, tx pgx.Tx, key session.Key) (string, error) {
	return RowIn(ctx, tx, pgx.RowTo[string], `
		SELECT id
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
}

// requeueRun records on a run why its attempt failed; it will have another one.
func requeueRun(ctx context.Context, tx pgx.Tx, a Attempt, f Failure) error {
	return Exec(ctx, tx, `
		UPDATE runs
		   SET state = 'queued', error = $3
		 WHERE tenant_id = $1 AND id = $2 AND state IN ('queued', 'running')`, a.Tenant, a.Run, Text(f.Reason))
}

// countFailure adds a failure to those of the session, and decides what follows.
func countFailure(ctx context.Context, tx pgx.Tx, a Attempt, f Failure) (retry Retry, err error) {
	own, death := 1, 0
	if f.Class == session.FailureDeath {
		own, death = 0, 1
	}
	var trials int
	var quarantined bool
	err = tx.QueryRow(ctx, `
		INSERT INTO session_failures AS f
		       (tenant_id, session_key, run_id, job_id, failures, deaths, error, next_try_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, now())
		    ON CONFLICT (tenant_id, session_key) DO UPDATE
		   SET run_id = $3, job_id = $4, failures = f.failures + $5, deaths = f.deaths + $6, error = $7,
		       failed_at = excluded.failed_at
		RETURNING failures, deaths, trials, quarantined_at IS NOT NULL`,
		a.Tenant, a.Key.Key, a.Run, a.Job, own, death, Text(f.Reason)).
		Scan(&retry.Failures, &retry.Deaths, &trials, &quarantined)
	if err != nil {
		return retry, err
	}
	retry.Quarantined = quarantined || f.Final ||
		retry.Failures >= session.MaxFailures || retry.Deaths >= session.MaxDeaths
	retry.Wait = nextTry(retry, trials, death > 0)
	return retry, Exec(ctx, tx, `
		UPDATE session_failures
		   SET next_try_at = now() + $3::interval,
		       quarantined_at = CASE WHEN $4 THEN coalesce(quarantined_at, now()) END,
		       trials = trials + $4::boolean::integer
		 WHERE tenant_id = $1 AND session_key = $2`, a.Tenant, a.Key.Key, retry.Wait, retry.Quarantined)
}

// nextTry returns when a session is tried again.
func nextTry(r Retry, trials int, death bool) time.Duration {
	switch {
	case !r.Quarantined && death:
		return 0
	case !r.Quarantined:
		return ownWaits[min(max(r.Failures, 1), len(ownWaits))-1]
	}
	wait := trialAfterFailures
	if r.Deaths >= session.MaxDeaths {
		wait = trialAfterDeaths
	}
	for range min(trials, 10) {
		wait *= trialFactor
	}
	return min(wait, longestTrial)
}

// quarantine ends the run, and makes a new one whose job sleeps until the trial. While that job is there, nothing else
// inserts one: not an append, and not the sweep.
func (s *Store) quarantine(
	ctx context.Context, tx pgx.Tx, row lockedSession, a Attempt, f Failure, retry Retry,
) error {
	if err := s.queue.Complete(ctx, tx, a.Job); err != nil {
		return err
	}
	err := Exec(ctx, tx, `
		UPDATE runs
		   SET state = 'failed', error = $3, finished_at = now()
		 WHERE tenant_id = $1 AND id = $2 AND state IN ('queued', 'running')`, a.Tenant, a.Run, Text(f.Reason))
	if err != nil {
		return err
	}
	job, _, err := s.enqueue(ctx, tx, a.Key, "sweep", row.now.Add(retry.Wait), false)
	if err != nil {
		return err
	}
	err = Exec(ctx, tx, `
		UPDATE session_failures
		   SET job_id = $3
		 WHERE tenant_id = $1 AND session_key = $2`, a.Tenant, a.Key.Key, job)
	if err != nil {
		return err
	}
	err = Exec(ctx, tx, `
		UPDATE runs
		   SET error = 'quarantined: ' || $3
		 WHERE tenant_id = $1 AND job_id = $4 AND session_key = $2 AND state = 'queued'`,
		a.Tenant, a.Key.Key, Text(f.Reason), job)
	if err != nil {
		return err
	}
	if err := s.queue.Tag(ctx, tx, job, queue.Quarantined); err != nil {
		return err
	}
	return asked(ctx, tx, a.Key, due.Hard, job) // no append asks again
}

// RunDied takes a job back from a worker that died, and counts the death if the worker had begun the job's run. It
// reports whether it did: not if the job has ended or another worker has it.
func (s *Store) RunDied(ctx context.Context, a Attempt, job queue.Running, reason string) (
	retry Retry, taken bool, err error,
) {
	err = s.InTenant(ctx, a.Tenant, func(tx pgx.Tx) error {
		row, err := lockSessionKey(ctx, tx, a.Key)
		if errors.Is(err, session.ErrNotFound) { // an erased session needs no compaction
			taken, err = s.queue.Release(ctx, tx, job, true)
			return err
		}
		if err != nil {
			return err
		}
		begun, err := RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT EXISTS (SELECT FROM runs WHERE tenant_id = $1 AND id = $2 AND state = 'running')`, a.Tenant, a.Run)
		if err != nil {
			return err
		}
		if !begun {
			taken, err = s.queue.Release(ctx, tx, job, false)
			return err
		}
		retry, err = s.fail(ctx, tx, row, a, Failure{Class: session.FailureDeath, Reason: reason})
		taken = err == nil
		return err
	})
	if errors.Is(err, ErrTaken) {
		return retry, false, nil
	}
	return retry, taken, err
}

// ErrTaken reports that a job is another worker's by now.
var ErrTaken = errors.New("the job is another worker's by now")

// RetryRule says how a session is compacted whose compactions fail.
type RetryRule struct {
	Wait  time.Duration // it is quarantined, and its trial is not due yet
	Alone bool          // no other compaction may be beside it in its process
}

// RetryRuleOf returns the rule for a run. A compaction that somebody asked for does not wait for the trial.
func (s *Store) RetryRuleOf(ctx context.Context, key session.Key, run uuid.UUID) (rule RetryRule, err error) {
	var cause string
	var deaths int
	var quarantined bool
	err = s.query(ctx, key.Tenant, `
		SELECT r.cause, f.deaths, f.quarantined_at IS NOT NULL, greatest(f.next_try_at - now(), '0')
		  FROM runs r
		  JOIN session_failures f ON f.tenant_id = r.tenant_id AND f.session_key = r.session_key
		 WHERE r.tenant_id = $1 AND r.id = $2`, []any{key.Tenant, run},
		one(&cause, &deaths, &quarantined, &rule.Wait))
	if errors.Is(err, session.ErrNotFound) {
		return RetryRule{}, nil
	}
	rule.Alone = quarantined || deaths >= session.AloneAfter
	if !quarantined || byHand(cause) || rule.Wait < time.Second {
		rule.Wait = 0
	}
	return rule, err
}

// byHand reports whether a run with this cause does not respect a quarantine.
func byHand(cause string) bool { return cause == "manual" || cause == causeDamage }

// sleepsAtLeast is how long a session that just failed sleeps, whoever asks.
const sleepsAtLeast = 5 * time.Second

// startSleeping makes the live job of a session start now, or as soon as it has slept for sleepsAtLeast if it failed.
// It does nothing to a session that is quarantined unless somebody asks by hand.
func (s *Store) startSleeping(
	ctx context.Context, tx pgx.Tx, key session.Key, job int64, cause string,
) error {
	var held bool
	var rest time.Duration
	err := tx.QueryRow(ctx, `
		SELECT quarantined_at IS NOT NULL AND NOT $3, greatest(failed_at + $4::interval - now(), '0')
		  FROM session_failures
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key, byHand(cause), sleepsAtLeast).
		Scan(&held, &rest)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) || held {
		return err
	}
	if err := requestRun(ctx, tx, key, job, cause); err != nil {
		return err
	}
	if rest == 0 {
		return s.queue.RunNow(ctx, tx, job)
	}
	return s.queue.RunWithin(ctx, tx, job, rest)
}

// startRetry does what startSleeping does to a job that sleeps, after a failure or until a better moment. One that
// waits for a worker, or has one, needs nothing.
func (s *Store) startRetry(ctx context.Context, tx pgx.Tx, key session.Key, job int64, cause string) error {
	sleeps, err := queue.Sleeps(ctx, tx, job)
	if err != nil || !sleeps {
		return err
	}
	return s.startSleeping(ctx, tx, key, job, cause)
}

// clearFailures ends a session's failures, because this job's compaction succeeded. A job that sleeps until a trial
// decides now.
func (s *Store) clearFailures(ctx context.Context, tx pgx.Tx, key session.Key, job int64) error {
	trial, err := RowIn(ctx, tx, pgx.RowTo[int64], `
		DELETE FROM session_failures
		 WHERE tenant_id = $1 AND session_key = $2
		RETURNING job_id`, key.Tenant, key.Key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil
	case err != nil || trial == job:
		return err
	}
	return s.queue.RunNow(ctx, tx, trial)
}

// failingSQL reads failures of a tenant's sessions from f.
const failingSQL = `
	SELECT s.id AS session, f.session_key AS key, f.run_id AS run, f.failures, f.deaths, f.error, f.since, f.failed_at,
	       f.next_try_at, f.quarantined_at
	  FROM `

// failuresSQL reads a page of a tenant's failures, and then their sessions.
var failuresSQL = failingSQL + `(SELECT *
	          FROM session_failures
	         WHERE tenant_id = $1` + NewestFirst(`since`, `session_key`) + `) f
	 CROSS JOIN LATERAL (
	       SELECT id
	         FROM sessions
	        WHERE tenant_id = $1 AND key = f.session_key
	       OFFSET 0) s
	 ORDER BY f.since DESC, f.session_key DESC`

var scanFailing = pgx.RowToStructByName[session.Failing]

// Failures lists a tenant's sessions whose compaction fails, the newest first.
func (s *Store) Failures(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.Failing, error) {
	return QueryRows(ctx, s, tenant, scanFailing, failuresSQL, PageArgs(tenant, page)...)
}

// Failing returns why a session's compaction fails; ErrNotFound if it does not.
func (s *Store) Failing(ctx context.Context, at session.Address) (session.Failing, error) {
	return QueryRow(ctx, s, at.Tenant, scanFailing, failingSQL+`session_failures f
	  JOIN sessions s ON s.tenant_id = f.tenant_id AND s.key = f.session_key
	 WHERE f.tenant_id = $1 AND s.id = $2`, at.Tenant, at.ID)
}
