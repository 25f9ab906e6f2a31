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
}

// Weight returns how large a session's view is; ErrNotFound.
func (s *Store) Weight(ctx context.Context, key session.Key) (Weight, error) {
	return queryRow(ctx, s, key.Tenant, pgx.RowToStructByPos[Weight], `
		SELECT checkpoint_size, tail_bytes, last_seq - through_seq
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, key.Tenant, key.Key)
}

// LogWeight returns how large a session's log is, all of it; ErrNotFound.
func (s *Store) LogWeight(ctx context.Context, key session.Key) (Weight, error) {
	return queryRow(ctx, s, key.Tenant, pgx.RowToStructByPos[Weight], `
		SELECT 0::bigint, coalesce(sum(`+messageBytes+`), 0)::bigint, count(*)
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND removed_at IS NULL`, key.Tenant, key.Key)
}
