package usage

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// StateOfAll counts the tenants, and of all of them what State counts of one, as a login of operators sees it. Its
// sessions are those in which something was stored.
func StateOfAll(ctx context.Context, s *postgres.Store) (session.StateOfAll, error) {
	return postgres.QueryRow(ctx, s, uuid.Nil, pgx.RowToStructByPos[session.StateOfAll], `
		SELECT (SELECT count(*)
		          FROM (SELECT
		                  FROM tenants
		                 LIMIT $1) t),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM usage_sessions
		                 LIMIT $1) s),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM usage_sessions
		                 WHERE over_window
		                 LIMIT $1) o),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM session_failures
		                 LIMIT $1) f),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM session_failures
		                 WHERE quarantined_at IS NOT NULL
		                 LIMIT $1) q),
		       (SELECT count(*)
		          FROM (SELECT
		                  FROM due_sessions
		                 LIMIT $1) d),
		       (SELECT min(since)
		          FROM due_sessions)`, session.MaxStateOfAll)
}

// ByDayOfAll returns what all tenants have used together, as ByDay does of one.
func ByDayOfAll(ctx context.Context, s *postgres.Store, from, to time.Time) ([]session.DayOfUse, error) {
	return postgres.QueryRows(ctx, s, uuid.Nil, pgx.RowToStructByName[session.DayOfUse], `
		SELECT coalesce(d.day, m.day) AS day,
		       coalesce(d.messages, 0) AS messages, coalesce(d.bytes, 0) AS bytes, coalesce(d.tokens, 0) AS tokens,
		       coalesce(d.views, 0) AS views, coalesce(d.tokens_served, 0) AS tokens_served,
		       coalesce(d.tokens_saved, 0) AS tokens_saved, coalesce(d.read_backs, 0) AS read_backs,
		       coalesce(d.compactions, 0) AS compactions,
		       coalesce(m.calls, 0) AS model_calls, coalesce(m.input_tokens, 0) AS model_input_tokens,
		       coalesce(m.output_tokens, 0) AS model_output_tokens, coalesce(m.cost_micros, 0) AS model_cost_micros
		  FROM (SELECT day, sum(messages)::bigint AS messages, sum(bytes)::bigint AS bytes,
		               sum(tokens)::bigint AS tokens, sum(views)::bigint AS views,
		               sum(tokens_served)::bigint AS tokens_served, sum(tokens_saved)::bigint AS tokens_saved,
		               sum(read_backs)::bigint AS read_backs, sum(compactions)::bigint AS compactions
		          FROM usage_days
		         WHERE day BETWEEN $1 AND $2
		         GROUP BY day) d
		  FULL JOIN (
		       SELECT day, sum(calls)::bigint AS calls, sum(input_tokens)::bigint AS input_tokens,
		              sum(output_tokens)::bigint AS output_tokens, sum(cost_micros)::bigint AS cost_micros
		         FROM model_spending
		        WHERE day BETWEEN $1 AND $2 AND model = ''
		        GROUP BY day) m
		    ON m.day = d.day
		 ORDER BY 1`, from.UTC(), to.UTC())
}
