package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
)

// While a version of a tenant's policy is rolled out, policies has two rows for the sessions without a policy of their
// own: the default and the version, whose id is the rollout's. inForce decides between them, and nothing else does.

// inForce is the condition that a policy p of a tenant is the one of its session s. A session's place among the
// thousandths of a rollout is a hash of the two, so it never moves, and another rollout tries other sessions.
const inForce = `p.for_id = s.policy_id
	AND (p.rollout_id IS NULL OR (p.id = p.rollout_id) = (
	     ('x' || encode(substr(sha256(uuid_send(p.rollout_id) || uuid_send(s.key)), 1, 4), 'hex'))::bit(32)::bigint
	     % 1000 < p.share))`

const rolloutColumns = `
	id, state, base_version, version, share AS per_mille, min_sessions, guard, reason, recompaction, revision,
	started_at, ended_at`

var scanRollout = pgx.RowToStructByName[session.Rollout]

// refuseDuringRollout returns ErrRolloutRunning if a version of the tenant's policy is being rolled out. The caller
// holds the lock of the default.
func refuseDuringRollout(ctx context.Context, tx pgx.Tx, tenant uuid.UUID) error {
	running, err := rowIn(ctx, tx, pgx.RowTo[bool], `
		SELECT EXISTS (
		       SELECT
		         FROM policy_rollouts
		        WHERE tenant_id = $1 AND ended_at IS NULL)`, tenant)
	if err == nil && running {
		err = session.ErrRolloutRunning
	}
	return err
}

// StartRollout makes a new version of a tenant's policy, and gives it to a share of the sessions without a policy of
// their own. No session is touched.
//
// Errors: ErrRolloutRunning, those of ChangeTenantPolicy, and an InvalidError if there is no version From.
func (s *Store) StartRollout(
	ctx context.Context, tenant uuid.UUID, start session.RolloutStart,
) (session.Rollout, bool, error) {
	return once(ctx, s, tenant, start.Idempotency, func(tx pgx.Tx) (session.Rollout, uuid.UUID, error) {
		made, err := startRollout(ctx, tx, tenant, start)
		return made, made.ID, err
	})
}

func startRollout(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, start session.RolloutStart,
) (made session.Rollout, err error) {
	old, err := readPolicy(ctx, tx, tenant, uuid.Nil, "FOR NO KEY UPDATE")
	if err != nil {
		return made, err
	}
	if err := refuseDuringRollout(ctx, tx, tenant); err != nil {
		return made, err
	}
	if start.Expected != nil && *start.Expected != old.Version.Tenant {
		return made, &session.StaleVersionError{Expected: *start.Expected, Current: old.Version.Tenant}
	}
	next, err := triedPolicy(ctx, tx, tenant, old, start)
	if err != nil {
		return made, err
	}
	if err := refuseContradicting(ctx, tx, tenant, next.Patch, start.Rebase); err != nil {
		return made, err
	}
	made, err = rowIn(ctx, tx, scanRollout, `
		INSERT INTO policy_rollouts (tenant_id, id, base_version, version, share, min_sessions, guard)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		RETURNING `+rolloutColumns, tenant, uuid.Must(uuid.NewV7()), old.Version.Tenant, next.Version.Tenant,
		start.PerMille, start.MinSessions, start.Guard)
	if err != nil {
		return made, err
	}
	if err := tryPolicy(ctx, tx, tenant, made, next); err != nil {
		return made, err
	}
	if err := emitRollout(ctx, tx, tenant, made, session.EventRolloutStarted); err != nil {
		return made, err
	}
	return made, record(ctx, tx, tenant, deed{
		action: audit.RolloutStart, object: audit.Rollout, id: made.ID.String(), before: old.Patch, after: next.Patch,
		detail: about{"base_version": made.BaseVersion, "version": made.Version, "per_mille": made.PerMille},
	})
}

// triedPolicy makes the version that a rollout tries, and writes it down.
func triedPolicy(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, old session.Policy, start session.RolloutStart,
) (next session.Policy, err error) {
	var from json.RawMessage
	if start.From > 0 {
		from, err = rowIn(ctx, tx, pgx.RowTo[json.RawMessage], `
			SELECT patch
			  FROM policy_versions
			 WHERE tenant_id = $1 AND session_key = $2 AND version = $3`, tenant, uuid.Nil, start.From)
		if errors.Is(err, session.ErrNotFound) {
			err = session.Invalid("/version", "invalid_request",
				"the tenant's policy has no version %d: GET /v1/policy/versions lists them", start.From)
		}
		if err != nil {
			return next, err
		}
	}
	if next, err = start.Edit(old.Patch, from); err != nil {
		return next, err
	}
	if equal(next, old) {
		return next, session.Invalid("", "invalid_request", "the policy is the tenant's default already, "+
			"as version %d: send one that differs", old.Version.Tenant)
	}
	next.Version.Tenant, err = recordPolicy(ctx, tx, session.Key{Tenant: tenant}, &next, 0, old.Version.Tenant,
		start.ChangedBy)
	return next, err
}

// tryPolicy gives the policy to the share of the rollout.
func tryPolicy(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r session.Rollout, p session.Policy) error {
	if err := exec(ctx, tx, putPolicy, policyArgs(tenant, r.ID, p)...); err != nil {
		return err
	}
	if err := exec(ctx, tx, `
		UPDATE policies
		   SET rollout_id = $2, share = $3
		 WHERE tenant_id = $1 AND id IN ($2, $4)`, tenant, r.ID, r.PerMille, uuid.Nil); err != nil {
		return err
	}
	return followRollout(ctx, tx, tenant, r)
}

// followRollout has the sweep look for sessions that another policy makes due, and after the guard.
func followRollout(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r session.Rollout) error {
	err := addChore(ctx, tx, tenant, ChorePolicy)
	if err == nil && r.Guard != nil {
		err = addChore(ctx, tx, tenant, ChoreRollout)
	}
	return err
}

// lockRollout takes the lock of the tenant's default, and reads a rollout that runs.
//
// Errors: ErrNotFound, ErrRolloutEnded, *session.StaleVersionError.
func lockRollout(
	ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, expected *int,
) (r session.Rollout, old session.Policy, err error) {
	if old, err = readPolicy(ctx, tx, tenant, uuid.Nil, "FOR NO KEY UPDATE"); err != nil {
		return r, old, err
	}
	r, err = readRollout(ctx, tx, tenant, id)
	switch {
	case err != nil:
	case r.State != session.RolloutRunning:
		err = fmt.Errorf("rollout %s (%s): %w", id, r.State, session.ErrRolloutEnded)
	case expected != nil && *expected != r.Revision:
		err = &session.StaleVersionError{Of: "rollout", Expected: *expected, Current: r.Revision}
	}
	return r, old, err
}

func readRollout(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (session.Rollout, error) {
	return rowIn(ctx, tx, scanRollout, `
		SELECT `+rolloutColumns+`
		  FROM policy_rollouts
		 WHERE tenant_id = $1 AND id = $2`, tenant, id)
}

// ChangeRollout changes the share of a rollout that runs, the sessions that it wants, or its guard. A larger share adds
// sessions, and takes none out; the next append of each is judged by the policy that it has then.
//
// Errors: ErrNotFound, ErrRolloutEnded, *session.StaleVersionError, ErrIdempotencyReused.
func (s *Store) ChangeRollout(
	ctx context.Context, tenant, id uuid.UUID, change session.RolloutChange,
) (session.Rollout, bool, error) {
	return once(ctx, s, tenant, change.Idempotency, func(tx pgx.Tx) (session.Rollout, uuid.UUID, error) {
		r, err := changeRollout(ctx, tx, tenant, id, change)
		return r, id, err
	})
}

func changeRollout(
	ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, change session.RolloutChange,
) (session.Rollout, error) {
	before, _, err := lockRollout(ctx, tx, tenant, id, change.Expected)
	if err != nil {
		return before, err
	}
	after, err := rowIn(ctx, tx, scanRollout, `
		UPDATE policy_rollouts
		   SET share = coalesce(nullif($3, 0), share), min_sessions = coalesce($4, min_sessions),
		       guard = CASE WHEN $6 THEN NULL ELSE coalesce($5::jsonb, guard) END,
		       revision = revision + 1
		 WHERE tenant_id = $1 AND id = $2
		RETURNING `+rolloutColumns, tenant, id, change.PerMille, change.MinSessions, change.Guard, change.NoGuard)
	if err != nil {
		return after, err
	}
	err = exec(ctx, tx, `
		UPDATE policies
		   SET share = $3
		 WHERE tenant_id = $1 AND rollout_id = $2`, tenant, id, after.PerMille)
	if err != nil {
		return after, err
	}
	if err := followRollout(ctx, tx, tenant, after); err != nil {
		return after, err
	}
	d := deed{action: audit.RolloutChange, object: audit.Rollout, id: id.String()}
	if d.before, err = changeable(before); err != nil {
		return after, err
	}
	if d.after, err = changeable(after); err != nil {
		return after, err
	}
	return after, record(ctx, tx, tenant, d)
}

// changeable returns what a change of a rollout changes.
func changeable(r session.Rollout) (json.RawMessage, error) {
	return json.Marshal(struct {
		PerMille    int                   `json:"per_mille"`
		MinSessions int                   `json:"min_sessions"`
		Guard       *session.RolloutGuard `json:"guard"`
	}{r.PerMille, r.MinSessions, r.Guard})
}

// PromoteRollout makes the version of a rollout the tenant's default, in one transaction: no session ever has neither.
//
// Errors: those of ChangeRollout, ErrRolloutSmall, and an InvalidError that names sessions whose own layer
// contradicts the version.
func (s *Store) PromoteRollout(
	ctx context.Context, tenant, id uuid.UUID, change session.RolloutChange,
) (session.Rollout, bool, error) {
	return once(ctx, s, tenant, change.Idempotency, func(tx pgx.Tx) (session.Rollout, uuid.UUID, error) {
		r, err := promoteRollout(ctx, tx, tenant, id, change)
		return r, id, err
	})
}

func promoteRollout(
	ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, change session.RolloutChange,
) (session.Rollout, error) {
	r, old, err := lockRollout(ctx, tx, tenant, id, change.Expected)
	if err != nil {
		return r, err
	}
	if err := refuseSmall(ctx, tx, tenant, r); err != nil {
		return r, err
	}
	next, err := readPolicy(ctx, tx, tenant, id, "")
	if err != nil {
		return r, err
	}
	if err := refuseContradicting(ctx, tx, tenant, next.Patch, change.Rebase); err != nil {
		return r, err
	}
	if err := exec(ctx, tx, putPolicy, policyArgs(tenant, uuid.Nil, next)...); err != nil {
		return r, err
	}
	if r, err = endRollout(ctx, tx, tenant, r, session.RolloutPromoted, nil); err != nil {
		return r, err
	}
	if err := emitRollout(ctx, tx, tenant, r, session.EventRolloutPromoted); err != nil {
		return r, err
	}
	return r, record(ctx, tx, tenant, deed{
		action: audit.RolloutPromote, object: audit.Rollout, id: id.String(), before: old.Patch, after: next.Patch,
		detail: about{"base_version": r.BaseVersion, "version": r.Version},
	})
}

// refuseSmall returns ErrRolloutSmall for a rollout with fewer sessions than it wants.
func refuseSmall(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r session.Rollout) error {
	if r.MinSessions == 0 {
		return nil
	}
	sessions, err := rowIn(ctx, tx, pgx.RowTo[int64], `
		SELECT count(DISTINCT session_key)
		  FROM runs
		 WHERE tenant_id = $1 AND tenant_version = $2 AND session_version = 0 AND state = 'done'`, tenant, r.Version)
	if err == nil && sessions < int64(r.MinSessions) {
		err = fmt.Errorf("%d sessions were %w, and the rollout wants %d: wait, or PATCH its min_sessions", sessions,
			session.ErrRolloutSmall, r.MinSessions)
	}
	return err
}

// endRollout ends a rollout: all sessions without a policy of their own have the default, whichever that is now.
func endRollout(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r session.Rollout, state session.RolloutState, reason *string,
) (session.Rollout, error) {
	err := exec(ctx, tx, `
		UPDATE policies
		   SET rollout_id = NULL, share = NULL
		 WHERE tenant_id = $1 AND id = $2`, tenant, uuid.Nil)
	if err != nil {
		return r, err
	}
	if err := deletePolicy(ctx, tx, tenant, r.ID); err != nil {
		return r, err
	}
	if err := addChore(ctx, tx, tenant, ChorePolicy); err != nil {
		return r, err
	}
	return rowIn(ctx, tx, scanRollout, `
		UPDATE policy_rollouts
		   SET state = $3, reason = $4, recompaction = $5, revision = revision + 1, ended_at = clock_timestamp()
		 WHERE tenant_id = $1 AND id = $2
		RETURNING `+rolloutColumns, tenant, r.ID, state, reason, r.Recompaction)
}

// EndRolloutBack gives all sessions of a rollout the tenant's default again. With RollBack it takes back what
// compactions under the version did, as the rollback of a recompaction.
//
// Errors: those of ChangeRollout.
func (s *Store) EndRolloutBack(
	ctx context.Context, tenant, id uuid.UUID, change session.RolloutChange,
) (session.Rollout, bool, error) {
	return once(ctx, s, tenant, change.Idempotency, func(tx pgx.Tx) (session.Rollout, uuid.UUID, error) {
		r, old, err := lockRollout(ctx, tx, tenant, id, change.Expected)
		if err != nil {
			return r, id, err
		}
		if change.RollBack {
			if r.Recompaction, err = s.undoRollout(ctx, tx, tenant, r); err != nil {
				return r, id, err
			}
		}
		r, err = backOut(ctx, tx, tenant, r, old, nil)
		return r, id, err
	})
}

// backOut ends a rollout whose version is not wanted; reason is the guard's, nil for a caller.
func backOut(
	ctx context.Context, tx pgx.Tx, tenant uuid.UUID, r session.Rollout, old session.Policy, reason *string,
) (session.Rollout, error) {
	tried, err := readPolicy(ctx, tx, tenant, r.ID, "")
	if err != nil {
		return r, err
	}
	if r, err = endRollout(ctx, tx, tenant, r, session.RolloutBack, reason); err != nil {
		return r, err
	}
	told := session.EventRolloutBack
	if reason != nil {
		told = session.EventRolloutStopped
	}
	if err := emitRollout(ctx, tx, tenant, r, told); err != nil {
		return r, err
	}
	return r, record(ctx, tx, tenant, deed{
		action: audit.RolloutBack, object: audit.Rollout, id: r.ID.String(), before: tried.Patch, after: old.Patch,
		detail: about{"base_version": r.BaseVersion, "version": r.Version, "reason": reason,
			"recompaction": r.Recompaction},
	})
}

// Rollouts lists a tenant's rollouts, newest first.
func (s *Store) Rollouts(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.Rollout, error) {
	sql := `
		SELECT ` + rolloutColumns + `
		  FROM policy_rollouts
		 WHERE tenant_id = $1` + newestFirst(`started_at`, `id`)
	return queryRows(ctx, s, tenant, scanRollout, sql, pageArgs(tenant, page)...)
}
