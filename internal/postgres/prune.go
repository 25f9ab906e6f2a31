package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// IdempotencyRetention is how long an Idempotency-Key is kept.
const IdempotencyRetention = 7 * 24 * time.Hour

const (
	recompactionRetention = 30 * 24 * time.Hour // after its end
	replayRetention       = 30 * 24 * time.Hour // after its end
	importRetention       = 30 * 24 * time.Hour // after its last line
)

// Prune deletes a tenant's Idempotency-Keys, recompactions, replays and imports whose time is over, but not the
// sessions that the imports wrote.
func (s *Store) Prune(ctx context.Context, tenant uuid.UUID) error {
	return s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`
			DELETE FROM idempotency
			 WHERE tenant_id = $1 AND created_at < now() - $2::interval`, tenant, IdempotencyRetention)
		batch.Queue(`
			DELETE FROM recompaction_sessions l
			 USING recompactions r
			 WHERE r.tenant_id = $1 AND r.finished_at < now() - $2::interval
			   AND l.tenant_id = $1 AND l.recompaction_id = r.id`, tenant, recompactionRetention)
		batch.Queue(`
			DELETE FROM recompactions
			 WHERE tenant_id = $1 AND finished_at < now() - $2::interval`, tenant, recompactionRetention)
		pruneReplays(batch, tenant)
		batch.Queue(`
			DELETE FROM import_lines l
			 USING imports i
			 WHERE i.tenant_id = $1 AND i.updated_at < now() - $2::interval
			   AND l.tenant_id = $1 AND l.import_id = i.id`, tenant, importRetention)
		batch.Queue(`
			DELETE FROM imports
			 WHERE tenant_id = $1 AND updated_at < now() - $2::interval`, tenant, importRetention)
		return tx.SendBatch(ctx, batch).Close()
	})
}

func pruneReplays(batch *pgx.Batch, tenant uuid.UUID) {
	for _, table := range []string{"replay_outcomes", "replay_sessions"} {
		batch.Queue(`
			DELETE FROM `+table+` l
			 USING replays r
			 WHERE r.tenant_id = $1 AND r.finished_at < now() - $2::interval
			   AND l.tenant_id = $1 AND l.replay_id = r.id`, tenant, replayRetention)
	}
	batch.Queue(`
		DELETE FROM replays
		 WHERE tenant_id = $1 AND finished_at < now() - $2::interval`, tenant, replayRetention)
}
