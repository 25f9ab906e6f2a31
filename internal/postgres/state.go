package postgres

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// State counts the sessions of a tenant, and those that need something now.
func (s *Store) State(ctx context.Context, tenant uuid.UUID) (session.State, error) {
	return QueryRow(ctx, s, tenant, pgx.RowToStructByPos[session.State], `
		SELECT (SELECT count(*)
		          FROM (SELECT
		                  FROM sessions
		                 WHERE tenant_id = $1
		                 LIMIT $2) s),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM usage_sessions
		                 WHERE tenant_id = $1 AND over_window
		                 LIMIT $2) o),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM session_failures
		                 WHERE tenant_id = $1
		                 LIMIT $2) f),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM session_failures
		                 WHERE tenant_id = $1 AND quarantined_at IS NOT NULL
		                 LIMIT $2) q),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM due_sessions
		                 WHERE tenant_id = $1
		                 LIMIT $2) d),
		       (SELECT min(since)
		          FROM due_sessions
		         WHERE tenant_id = $1)`, tenant, session.MaxStateCount)
}

// RunsByHour counts the runs of a tenant by the hours in which they were asked for, the oldest first. Hours without any
// are left out. Runs have no index by time, but their ids begin with one, by the clock of the process that made them.
func (s *Store) RunsByHour(ctx context.Context, tenant uuid.UUID, since time.Time) ([]session.HourOfRuns, error) {
	return QueryRows(ctx, s, tenant, pgx.RowToStructByPos[session.HourOfRuns], `
		SELECT date_trunc('hour', triggered_at, 'UTC'),
		       count(*) FILTER (WHERE state = 'done'),
		       count(*) FILTER (WHERE state = 'unchanged'),
		       count(*) FILTER (WHERE state IN ('postponed', 'superseded')),
		       count(*) FILTER (WHERE state = 'failed'),
		       count(*) FILTER (WHERE state IN ('queued', 'running')),
		       coalesce(sum(tokens_before - tokens_after) FILTER (WHERE state = 'done'), 0)::bigint,
		       coalesce(sum(results_persisted), 0)::bigint
		  FROM runs
		 WHERE tenant_id = $1 AND id >= $2 AND triggered_at >= $3
		 GROUP BY 1
		 ORDER BY 1`, tenant, firstID(since.Add(-time.Hour)), since)
}

// firstID returns an id that is before all that were made from a time on.
func firstID(at time.Time) (id uuid.UUID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	return id
}
