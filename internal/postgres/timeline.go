package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Timeline returns how a session's log has grown: at most this number of points, each the sum of the messages before.
// ErrNotFound if there is no such session.
func (s *Store) Timeline(ctx context.Context, at session.Address, points int64) ([]session.Growth, error) {
	return InSession(ctx, s, at, func(tx pgx.Tx, key session.Key) ([]session.Growth, error) {
		return RowsIn(ctx, tx, pgx.RowToStructByPos[session.Growth], `
			SELECT max(seq), max(created_at), (sum(sum(tokens)) OVER so_far)::bigint,
			       (sum(sum(coalesce(view_tokens, tokens))) OVER so_far)::bigint,
			       (sum(count(*) FILTER (WHERE answers)) OVER so_far)::bigint
			  FROM (SELECT seq, created_at, tokens, view_tokens,
			               role = 'assistant' AND lag(role) OVER (ORDER BY seq) IS DISTINCT FROM role AS answers
			          FROM messages
			         WHERE tenant_id = $1 AND session_key = $2 AND seq > 0) m
			 GROUP BY (seq - 1) * $3 / (SELECT last_seq FROM sessions WHERE tenant_id = $1 AND key = $2)
			WINDOW so_far AS (ORDER BY max(seq))
			 ORDER BY 1`, at.Tenant, key.Key, points)
	})
}
