package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// Weight is how large what is read of a session is. It is known before it is read.
type Weight struct {
	Checkpoint int64 // bytes of its newest checkpoint, decompressed
	Tail       int64 // bytes of the messages after it
	Messages   int64 // after it, at most
	Window     int64 // tokens of the model's window
	Media      int64 // bytes of pictures that its policy lets a view keep; 0: all
}

// Weight returns how large a session's view is; ErrNotFound.
func (s *Store) Weight(ctx context.Context, key session.Key) (Weight, error) {
	return QueryRow(ctx, s, key.Tenant, pgx.RowToStructByPos[Weight], `
		SELECT s.checkpoint_size, s.tail_bytes, s.last_seq - s.through_seq, s.window_tokens,
		       coalesce((p.document ->> 'media_bytes')::bigint, 0)
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
		 WHERE s.tenant_id = $1 AND s.key = $2`, key.Tenant, key.Key)
}

// LogWeight returns how large a session's log is, all of it; ErrNotFound.
func (s *Store) LogWeight(ctx context.Context, key session.Key) (Weight, error) {
	return QueryRow(ctx, s, key.Tenant, pgx.RowToStructByPos[Weight], `
		SELECT 0::bigint, coalesce(sum(`+messageBytes+`), 0)::bigint, count(m.seq),
		       s.window_tokens, coalesce((p.document ->> 'media_bytes')::bigint, 0)
		  FROM sessions s
		  JOIN policies p ON p.tenant_id = $1 AND p.id = s.policy_id
		  LEFT JOIN messages m ON m.tenant_id = $1 AND m.session_key = $2 AND m.removed_at IS NULL
		 WHERE s.tenant_id = $1 AND s.key = $2
		 GROUP BY s.window_tokens, p.document ->> 'media_bytes'`, key.Tenant, key.Key)
}
