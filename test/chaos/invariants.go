package main

import (
	"context"
	"fmt"
	"time"
)

// invariants are statements that must find nothing, whatever happened.
var invariants = []struct{ name, sql string }{
	{"seqs are dense", `
		SELECT s.id, s.last_seq, count(m.seq)
		  FROM sessions s
		  LEFT JOIN messages m ON m.tenant_id = s.tenant_id AND m.session_key = s.key
		 GROUP BY s.tenant_id, s.key, s.id, s.last_seq
		HAVING count(m.seq) <> s.last_seq OR max(m.seq) <> s.last_seq`},
	{"the tokens of a view are those of its parts", `
		SELECT s.id, s.context_tokens, t.tokens
		  FROM sessions s
		  LEFT JOIN checkpoints c ON c.tenant_id = s.tenant_id AND c.session_key = s.key AND c.n = s.checkpoint_n
		 CROSS JOIN LATERAL (
		       SELECT coalesce(c.tokens, 0) + coalesce(sum(coalesce(m.view_tokens, m.tokens)), 0) AS tokens
		         FROM messages m
		        WHERE m.tenant_id = s.tenant_id AND m.session_key = s.key AND m.seq > s.through_seq) t
		 WHERE s.context_tokens <> t.tokens`},
	{"the tokens of a log are those of its messages", `
		SELECT s.id, s.total_tokens, sum(m.tokens)
		  FROM sessions s
		  JOIN messages m ON m.tenant_id = s.tenant_id AND m.session_key = s.key
		 GROUP BY s.tenant_id, s.key, s.id, s.total_tokens
		HAVING s.total_tokens <> sum(m.tokens)`},
	{"the newest checkpoint is the session's", `
		SELECT s.id, s.checkpoint_n, max(c.n)
		  FROM sessions s
		  LEFT JOIN checkpoints c ON c.tenant_id = s.tenant_id AND c.session_key = s.key
		 GROUP BY s.tenant_id, s.key, s.id, s.checkpoint_n
		HAVING s.checkpoint_n <> coalesce(max(c.n), 0)`},
	{"a checkpoint stands on what its compaction was planned on", `
		SELECT c.session_key, c.n, c.base_n, r.checkpoint_n, r.base_n
		  FROM checkpoints c
		  JOIN runs r ON r.tenant_id = c.tenant_id AND r.id = c.run_id
		 WHERE r.checkpoint_n <> c.n OR c.base_n NOT IN (0, r.base_n)`},
	{"a compaction covers what its base covers", `
		SELECT c.session_key, c.n, c.through_seq, b.through_seq
		  FROM checkpoints c
		  JOIN checkpoints b ON b.tenant_id = c.tenant_id AND b.session_key = c.session_key AND b.n = c.base_n
		 WHERE c.restored_from IS NULL AND c.through_seq < b.through_seq`},
	{"a session has at most one live compaction", `
		SELECT j.args ->> 'session', count(*)
		  FROM river_job j
		 WHERE j.kind = 'compact' AND j.finalized_at IS NULL
		 GROUP BY j.args ->> 'session'
		HAVING count(*) > 1`},
	{"a result that a checkpoint names is there", `
		SELECT c.session_key, c.n, a ->> 'ref'
		  FROM checkpoints c
		 CROSS JOIN jsonb_array_elements(c.manifest) a
		  LEFT JOIN results r ON r.tenant_id = c.tenant_id AND r.session_key = c.session_key AND r.ref = a ->> 'ref'
		 WHERE a ->> 'ref' LIKE 'r%' AND r.ref IS NULL`},
	{"a body is complete", `
		SELECT r.session_key, r.ref
		  FROM results r
		  JOIN result_bodies b ON b.tenant_id = r.tenant_id AND b.session_key = r.session_key AND b.id = r.body_id
		 WHERE b.sha256 IS NULL`},
}

// checkInvariants runs the statements of invariants.
func (r *rig) checkInvariants(ctx context.Context) error {
	for _, invariant := range invariants {
		rows, err := r.database.pool().Query(ctx, invariant.sql)
		if err != nil {
			return fmt.Errorf("%s: %w", invariant.name, err)
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				return err
			}
			r.found.add("invariant", "%s: %v", invariant.name, values)
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("%s: %w", invariant.name, err)
		}
	}
	return nil
}

// settles bounds how long jobs may take to end when nobody appends any more.
const settles = 30 * time.Second

// awaitIdle waits until no compaction is live but those that wait for idle sessions, and checks that no other run is
// left open.
func (r *rig) awaitIdle(ctx context.Context) error {
	for until := time.Now().Add(settles); ; sleep(ctx, 100*time.Millisecond) {
		var live int
		var orphans *string
		err := r.database.pool().QueryRow(ctx, `
			SELECT (SELECT count(*)
			          FROM river_job
			         WHERE kind = 'compact' AND state IN ('available', 'running', 'retryable')),
			       (SELECT string_agg(concat_ws(' ', s.id, r.cause, r.state, r.triggered_at), ', ')
			          FROM runs r
			          LEFT JOIN sessions s ON s.tenant_id = r.tenant_id AND s.key = r.session_key
			          LEFT JOIN river_job j ON j.id = r.job_id AND j.finalized_at IS NULL
			         WHERE r.state IN ('queued', 'running') AND j.id IS NULL)`).Scan(&live, &orphans)
		switch {
		case err != nil:
			return err
		case live == 0 && orphans == nil:
			return nil
		case time.Now().After(until) && orphans != nil:
			r.found.add("run", "open %v after the last append although their jobs are not live: %s", settles, *orphans)
			return nil
		case time.Now().After(until):
			r.found.add("late", "%d compactions are live %v after the last append", live, settles)
			return nil
		}
	}
}
