package usage

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// State counts the sessions of a tenant, and those that need something now.
func State(ctx context.Context, s *postgres.Store, tenant uuid.UUID) (session.State, error) {
	return postgres.QueryRow(ctx, s, tenant, pgx.RowToStructByPos[session.State], `
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
func RunsByHour(
	ctx context.Context, s *postgres.Store, tenant uuid.UUID, since time.Time,
) ([]session.HourOfRuns, error) {
	return postgres.QueryRows(ctx, s, tenant, pgx.RowToStructByPos[session.HourOfRuns], `
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
		 ORDER BY 1`, tenant, postgres.FirstIDOf(since.Add(-time.Hour)), since)
}

// ByDay returns what a tenant has used from one day in UTC to another, both included: the days with any use, in
// order.
func ByDay(ctx context.Context, s *postgres.Store, tenant uuid.UUID, from, to time.Time) ([]session.DayOfUse, error) {
	return postgres.QueryRows(ctx, s, tenant, pgx.RowToStructByName[session.DayOfUse], `
		SELECT coalesce(d.day, m.day) AS day,
		       coalesce(d.messages, 0) AS messages, coalesce(d.bytes, 0) AS bytes, coalesce(d.tokens, 0) AS tokens,
		       coalesce(d.views, 0) AS views, coalesce(d.tokens_served, 0) AS tokens_served,
		       coalesce(d.tokens_saved, 0) AS tokens_saved, coalesce(d.read_backs, 0) AS read_backs,
		       coalesce(d.compactions, 0) AS compactions,
		       coalesce(m.calls, 0) AS model_calls, coalesce(m.input_tokens, 0) AS model_input_tokens,
		       coalesce(m.output_tokens, 0) AS model_output_tokens, coalesce(m.cost_micros, 0) AS model_cost_micros
		  FROM (SELECT * FROM usage_days WHERE tenant_id = $1 AND day BETWEEN $2 AND $3) d
		  FULL JOIN (SELECT * FROM model_spending WHERE tenant_id = $1 AND model = '' AND day BETWEEN $2 AND $3) m
		    ON m.day = d.day
		 ORDER BY 1`, tenant, from.UTC(), to.UTC())
}

// BySession returns what a page of a tenant's sessions, archived ones included, newest first, have used.
func BySession(
	ctx context.Context, s *postgres.Store, tenant uuid.UUID, page session.Page,
) ([]session.SessionUse, error) {
	return postgres.QueryRows(ctx, s.Seeing(postgres.AllSessions), tenant, pgx.RowToStructByName[session.SessionUse], `
		SELECT s.id AS session, s.key, s.created_at,
		       u.messages, u.bytes, u.tokens, u.views, u.tokens_served, u.tokens_saved, u.read_backs, u.compactions,
		       m.model_calls + coalesce((a.model_use ->> 'calls')::bigint, 0) AS model_calls,
		       m.model_input_tokens + coalesce((a.model_use ->> 'input')::bigint, 0) AS model_input_tokens,
		       m.model_output_tokens + coalesce((a.model_use ->> 'output')::bigint, 0) AS model_output_tokens,
		       m.model_cost_micros + coalesce((a.model_use ->> 'cost')::bigint, 0) AS model_cost_micros
		  FROM sessions s
		  JOIN usage_sessions u ON u.tenant_id = s.tenant_id AND u.session_key = s.key
		 CROSS JOIN LATERAL (
		       SELECT count(*) AS model_calls, coalesce(sum(a.input_tokens), 0)::bigint AS model_input_tokens,
		              coalesce(sum(a.output_tokens), 0)::bigint AS model_output_tokens,
		              coalesce(sum(a.cost_micros), 0)::bigint AS model_cost_micros
		         FROM model_answers a
		        WHERE a.tenant_id = s.tenant_id AND a.session_key = s.key AND a.answer IS NOT NULL) m
		  LEFT JOIN session_archives a ON a.tenant_id = s.tenant_id AND a.session_key = s.key AND a.state = 'archived'
		 WHERE s.tenant_id = $1`+postgres.NewestFirst("s.created_at", "s.key"), postgres.PageArgs(tenant, page)...)
}
