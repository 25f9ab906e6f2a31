package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// Append does what AppendAndView does, without a view.
func (s *Store) Append(ctx context.Context, a session.Append) (done session.Appended, replayed bool, err error) {
	return s.AppendAndView(ctx, a, nil)
}

// AppendAndView adds messages to the end of a session, all or none, in one round trip. An append that reaches the
// session's armed threshold inserts the compaction job in its own transaction, as do all others that one statement
// cannot decide. replayed reports that the answer is that of an earlier request with the same Idempotency-Key. A view
// is read in the same transaction, if that has this append alone and one statement decides it.
//
// Errors: ErrNotFound, *StaleError, ErrOtherBasis, ErrTooManyMessages, ErrClientIDReused, ErrIdempotencyReused,
// ErrSessionBusy; of an append that makes its session, those of Create and a *DiffersError.
func (s *Store) AppendAndView(
	ctx context.Context, a session.Append, view *Viewing,
) (done session.Appended, replayed bool, err error) {
	pen, err := s.TurnToWrite(ctx, a.Session)
	if err != nil {
		return done, false, err
	}
	defer pen.Done()
	now := &appending{Append: a, params: newAppendParams(a), view: view}
	if view != nil {
		view.held = s.bodies.get(a.Session)
	}
	if showsImages(a.Messages) {
		return s.appendUnderLock(ctx, a, now.params)
	}
	group, err := s.groups.enter(ctx, now)
	if err == nil && group != nil {
		err = s.commitGroup(ctx, now, group)
	}
	if err == nil && now.fate == undone {
		now.view = nil
		err = s.commitGroup(ctx, now, nil)
	}
	if err != nil {
		return done, false, err
	}
	switch {
	case now.fate == appended:
		s.finishViewing(ctx, a.Session, now.view)
		return now.done, false, nil
	case now.fate == refused, Violates(now.err, "messages_client_id"), Violates(now.err, "idempotency_pkey"):
		return s.appendUnderLock(ctx, a, now.params)
	}
	return done, false, givenUp(ctx, now.err)
}

// appendUnderLock decides under the session's lock what the one statement could not, in this order: replays first, then
// what is wrong, then the append itself together with the compaction that it makes due.
func (s *Store) appendUnderLock(ctx context.Context, a session.Append, p appendParams) (
	done session.Appended, replayed bool, err error,
) {
	err = s.InTenant(ctx, a.Session.Tenant, func(tx pgx.Tx) error {
		row, lockErr := lockSession(ctx, tx, a.Session)
		if lockErr != nil && !errors.Is(lockErr, session.ErrNotFound) {
			return lockErr
		}
		if replayed, err = replay(ctx, tx, a.Session.Tenant, a.Idempotency, &done); err != nil || replayed {
			return err
		}
		if err = sameBasis(ctx, tx, a); err != nil {
			return err
		}
		if lockErr != nil && a.Make != nil {
			row, lockErr = makeLocked(ctx, tx, a.Session, a.Make)
		}
		if lockErr != nil {
			return lockErr
		}
		if done, err = resend(ctx, tx, row, a); err != nil || done.Replayed {
			return err
		}
		if err = refuse(row, a); err != nil {
			return err
		}
		if done, err = s.appendDue(ctx, tx, row, a, p); err != nil {
			return err
		}
		return remember(ctx, tx, row.Key, a.Idempotency, done)
	})
	return done, replayed, err
}

// sameBasis returns ErrOtherBasis if a session is not what an append takes it for, or is not there.
func sameBasis(ctx context.Context, tx pgx.Tx, a session.Append) error {
	if a.Basis == nil {
		return nil
	}
	found, err := RowIn(ctx, tx, pgx.RowToStructByPos[session.Basis], basisSQL, a.Session.Tenant, a.Session.ID)
	if errors.Is(err, session.ErrNotFound) || err == nil && found != *a.Basis {
		err = session.ErrOtherBasis
	}
	return err
}

// makeLocked makes a session, and locks it.
func makeLocked(
	ctx context.Context, tx pgx.Tx, at session.Address, change *session.Change,
) (row lockedSession, err error) {
	made, err := createSession(ctx, tx, at, *change)
	if err == nil && !made.Created {
		found := made.Session
		err = change.Differs(session.Basis{Format: found.Format, Model: found.Model, WindowTokens: found.WindowTokens})
	}
	if err != nil {
		return row, err
	}
	return lockSession(ctx, tx, at)
}

func refuse(row lockedSession, a session.Append) error {
	switch {
	case a.ExpectedSeq != nil && *a.ExpectedSeq != row.lastSeq:
		return &session.StaleError{Expected: *a.ExpectedSeq, Current: row.lastSeq}
	case row.lastSeq+int64(len(a.Messages)) > session.MaxSessionMessages:
		return session.ErrTooManyMessages
	case row.tailBytes+bytesOf(a.Messages) > session.MaxTailBytes:
		return fmt.Errorf("%d bytes that no compaction covers yet: %w", row.tailBytes, session.ErrTooManyMessages)
	}
	return nil
}

// appendDue appends under the session's lock. It caps what is too large for a view, and inserts the compaction job if
// the session is due afterwards.
func (s *Store) appendDue(ctx context.Context, tx pgx.Tx, row lockedSession, a session.Append, p appendParams) (
	session.Appended, error,
) {
	done := session.Appended{Tokens: p.tokens, Compaction: session.CompactionNone}
	capped, err := s.capped(ctx, tx, row, a)
	if err != nil {
		return done, err
	}
	locked := p
	locked.locked = true
	locked.route = nil // remember writes the record, with the compaction
	if capped != nil {
		locked.capped = *capped
		locked.shapes = shapesOf(p.format, a.Messages, capped)
	}
	var measured measure
	sql, args := locked.statement()
	err = tx.QueryRow(ctx, sql, args...).
		Scan(&done.LastSeq, &done.ContextTokens, &done.TotalTokens, &measured.calibration, &measured.unseen)
	if err != nil {
		return done, err
	}
	done.FirstSeq = done.LastSeq - p.count + 1
	row.measuredBy(measured)
	row.rule.Seq, row.lastAppend = done.LastSeq, row.now
	row.rule.Bytes += p.bytes
	if showsImages(a.Messages) {
		if err = row.readImages(ctx, tx); err != nil {
			return done, err
		}
	}
	threshold, isDue := row.due(done.ContextTokens)
	if !isDue {
		return done, nil
	}
	done.Compaction, err = s.askForCompaction(ctx, tx, row, threshold, causes[threshold])
	return done, err
}

// causes maps a threshold to the cause of the run that it asks for.
var causes = map[due.Threshold]string{due.Idle: causeIdle, due.Trigger: "threshold", due.Hard: "hard"}

// causeManual is the cause of a run that a request asks for.
const causeManual = "manual"

// causeIdle is the cause of a run that waits until nobody has used the session for a while.
const causeIdle = "idle"

// askForCompaction inserts a job because the session reached a threshold, and arms the next one. Below the hard limit
// the job may have to wait until the session has not been used for a while. One that waits already starts now if a
// higher threshold than its own is reached, and decides anew: a session never has two. A job that waits for an idle
// session is not reported to the caller, who may never see it run. The lock order is session row, then job row.
func (s *Store) askForCompaction(
	ctx context.Context, tx pgx.Tx, row lockedSession, reached due.Threshold, cause string,
) (session.Compaction, error) {
	if reached == due.Idle {
		_, _, err := s.enqueue(ctx, tx, row.Key, causeIdle, row.waitsUntil(reached), false)
		if err == nil {
			err = idleAsked(ctx, tx, row.Key)
		}
		return session.CompactionNone, err
	}
	runNow := reached == due.Hard && row.mayWait() || row.rule.IdleAsked
	job, inserted, err := s.enqueue(ctx, tx, row.Key, cause, row.waitsUntil(reached), runNow)
	if err != nil {
		return "", err
	}
	if reached == due.Hard && !inserted && !runNow {
		if err := s.startRetry(ctx, tx, row.Key, job, cause); err != nil {
			return "", err
		}
	}
	if err := asked(ctx, tx, row.Key, reached, job); err != nil {
		return "", err
	}
	if !inserted {
		return session.CompactionLive, nil
	}
	return session.CompactionQueued, EmitOf(ctx, tx, row.Key, session.EventDue, about{
		"reached": thresholds[reached], "cause": cause, "last_seq": row.rule.Seq,
	})
}

// thresholds are the names of those that an event is about.
var thresholds = map[due.Threshold]string{due.Trigger: "trigger", due.Hard: "hard"}

// armTrigger makes the next append that reaches a session's trigger ask for a compaction.
func armTrigger(ctx context.Context, tx pgx.Tx, key session.Key) error {
	return Exec(ctx, tx, `
		WITH done AS (
			DELETE FROM due_sessions
			 WHERE tenant_id = $1 AND session_key = $2
		)
		UPDATE sessions
		   SET armed_threshold = $3, idle_asked = false
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key, due.Trigger)
}

// idleAsked records that the session has a job that waits until nobody uses it: no append asks again.
func idleAsked(ctx context.Context, tx pgx.Tx, key session.Key) error {
	return Exec(ctx, tx, `
		UPDATE sessions
		   SET idle_asked = true
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
}

// compactIfDue inserts a compaction job if what this transaction changed makes the session due.
func (s *Store) compactIfDue(ctx context.Context, tx pgx.Tx, key session.Key, cause string) error {
	row, err := lockSessionKey(ctx, tx, key)
	if err != nil {
		return err
	}
	threshold, isDue := row.due(row.contextTokens)
	if !isDue {
		return nil
	}
	_, err = s.askForCompaction(ctx, tx, row, threshold, cause)
	return err
}

// enqueue inserts a run and its job. If the session has a live job, nothing is inserted, and runNow makes that job
// start now; one that a request asked for no longer waits behind those that a threshold did. If it has none, a run that
// has not ended has lost its job, and is ended here: nothing else would.
func (s *Store) enqueue(ctx context.Context, tx pgx.Tx, key session.Key, cause string, at time.Time, runNow bool) (
	job int64, inserted bool, err error,
) {
	run := uuid.Must(uuid.NewV7())
	args := queue.CompactArgs{Tenant: key.Tenant, Session: key.Key, Run: run, Manual: cause == causeManual}
	job, inserted, err = s.queue.Insert(ctx, tx, args, at)
	if err != nil {
		return 0, false, err
	}
	if inserted {
		if err := endLostRuns(ctx, tx, key); err != nil {
			return 0, false, err
		}
		return job, true, insertRun(ctx, tx, key, run, job, cause)
	}
	if cause != causeManual {
		if err := s.queue.Promote(ctx, tx, job); err != nil {
			return 0, false, err
		}
	}
	if !runNow {
		return job, false, nil
	}
	return job, false, s.startSleeping(ctx, tx, key, job, cause)
}
