package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Stray are rows of a table that name a session that does not exist.
type Stray struct {
	Table   string
	Session uuid.UUID
}

// strayTables have rows of sessions, and a key that begins with tenant and session.
var strayTables = []string{
	"messages", "message_packs", "checkpoints", "checkpoint_results", "results", "result_bodies", "result_chunks",
}

// Strays returns the rows of a tenant that name sessions that do not exist, of each table those of limit sessions at
// most.
func (s *Store) Strays(ctx context.Context, tenant uuid.UUID, limit int) (found []Stray, err error) {
	for _, table := range strayTables {
		sql := statement("verify_strays", "{table}", table)
		keys, err := QueryRows(ctx, s.Seeing(AllSessions), tenant, pgx.RowTo[uuid.UUID], sql, tenant, limit)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			found = append(found, Stray{table, key})
		}
	}
	return found, nil
}
