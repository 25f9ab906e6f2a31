package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// asked records that a session has reached a threshold and which job it has for that, and arms the next threshold. The
// row is what the sweep goes by if the job is lost.
func asked(ctx context.Context, tx pgx.Tx, key session.Key, reached due.Threshold, job int64) error {
	return Exec(ctx, tx, `
		WITH armed AS (
			UPDATE sessions
			   SET armed_threshold = $3
			 WHERE tenant_id = $1 AND key = $2
		)
		INSERT INTO due_sessions AS d (tenant_id, session_key, level, job_id)
		VALUES ($1, $2, $4, $5)
		ON CONFLICT (tenant_id, session_key) DO UPDATE
		   SET level = excluded.level, job_id = excluded.job_id`,
		key.Tenant, key.Key, reached.Next(), reached, job)
}

// notDue takes away the row of a session that is not due any more.
func notDue(ctx context.Context, tx pgx.Tx, key session.Key) error {
	return Exec(ctx, tx, `
		DELETE FROM due_sessions
		 WHERE tenant_id = $1 AND session_key = $2`, key.Tenant, key.Key)
}

// sweptAtOnce bounds how many sessions one sweep asks for, oldest first. The next one continues.
const sweptAtOnce = 1000

var lostSQL = `
	SELECT d.tenant_id AS tenant, d.session_key AS key
	  FROM due_sessions d
	 WHERE NOT ` + queue.IsLive(`d.job_id`) + `
	 ORDER BY d.since
	 LIMIT $1`

// Sweep asks again for the compaction of sessions of all tenants that are due and whose job was lost. It returns how
// many jobs it inserted. A failure for one session does not keep it from the others.
func (s *Store) Sweep(ctx context.Context) (inserted int, err error) {
	rows, err := s.pool.Query(ctx, lostSQL, sweptAtOnce)
	if err != nil {
		return 0, err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByName[session.Key])
	if err != nil {
		return 0, err
	}
	return s.sweepEach(ctx, keys)
}

func (s *Store) sweepEach(ctx context.Context, keys []session.Key) (inserted int, err error) {
	var failed []error
	for _, key := range keys {
		n, err := InTx(ctx, s, key.Tenant, func(tx pgx.Tx) (int, error) { return s.sweepOne(ctx, tx, key) })
		inserted += n
		failed = append(failed, err)
	}
	return inserted, errors.Join(failed...)
}

// sweepOne looks at a session under its lock, because it may have changed since it was found.
func (s *Store) sweepOne(ctx context.Context, tx pgx.Tx, key session.Key) (inserted int, err error) {
	row, err := lockSessionKey(ctx, tx, key)
	if errors.Is(err, session.ErrNotFound) {
		return 0, notDue(ctx, tx, key)
	}
	if err == nil {
		err = row.readImages(ctx, tx)
	}
	if err != nil {
		return 0, err
	}
	reached, isDue := row.overTrigger()
	if !isDue {
		return 0, notDue(ctx, tx, key)
	}
	compaction, err := s.askForCompaction(ctx, tx, row, reached, "sweep")
	if compaction == session.CompactionQueued {
		inserted = 1
	}
	return inserted, err
}

// auditStatement looks at the sessions of a tenant after the key $2, $3 at most. It returns how many there were, the
// last of them, those that are over their trigger without a row that says so, and the ids of those that the ledger has
// not counted whole or a follower does not know, as {or behind} says. It does not trust the armed threshold.
const auditStatement = `
	WITH slice AS MATERIALIZED (
		SELECT *
		  FROM sessions
		 WHERE tenant_id = $1 AND key > $2
		 ORDER BY key
		 LIMIT $3
	)
	SELECT count(*), coalesce((array_agg(s.key ORDER BY s.key DESC))[1], $2),
	       coalesce(array_agg(s.key) FILTER (WHERE s.context_tokens + s.overhead_tokens >= {over trigger}
	                                           AND d.session_key IS NULL), '{}'),
	       coalesce(array_agg(s.id) FILTER (WHERE coalesce(u.counted_seq, 0) < s.last_seq
	                                           OR coalesce(u.counted_n, 0) < s.checkpoint_n
	                                           OR u.appended_at IS DISTINCT FROM s.last_append_at
	                                           OR u.session_key IS NULL
	                                           OR u.over_window <> ({over window})
	                                           {or behind}), '{}')
	  FROM slice s
	  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
	  LEFT JOIN due_sessions d ON d.tenant_id = $1 AND d.session_key = s.key
	  LEFT JOIN usage_sessions u ON u.tenant_id = $1 AND u.session_key = s.key`

var overTrigger = due.TriggerSQL(`s.calibration`, `s.unseen_tokens`, `s.last_seq`,
	`s.tail_bytes + s.checkpoint_size`, session.EngineVersion)

// slice is a part of a tenant's sessions that was looked at.
type slice struct {
	sessions int // that were looked at; fewer than the limit if there are no more
	last     uuid.UUID
	inserted int // jobs
}

// audit asks for the compaction of sessions that are due without a row, among those after a key, at most limit of them,
// and brings the ledger up to date with all of them.
func (s *Store) audit(ctx context.Context, tenant, after uuid.UUID, limit int) (seen slice, err error) {
	var lost []uuid.UUID
	var uncounted []string
	err = s.query(ctx, tenant, s.auditSQL(), []any{tenant, after, limit},
		one(&seen.sessions, &seen.last, &lost, &uncounted))
	if err != nil {
		return seen, err
	}
	if err := s.countStored(ctx, tenant, uncounted); err != nil {
		return seen, err
	}
	keys := make([]session.Key, len(lost))
	for i, key := range lost {
		keys[i] = session.Key{Tenant: tenant, Key: key}
	}
	seen.inserted, err = s.sweepEach(ctx, keys)
	return seen, err
}
