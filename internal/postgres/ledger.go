package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/session"
)

// today is the day for which is counted.
const today = `(now() AT TIME ZONE 'UTC')::date`

var (
	ledgerLockSQL  = statement("ledger_lock")
	ledgerCountSQL = statement("ledger_count", "{today}", today, "{over}", overWindow)
)

// CountUsage adds to the ledger what a process has counted of reads of a tenant's sessions, each once in the list, and
// what these sessions have stored since they were counted last. Reads of sessions that are gone count for their day.
// Those that have changed are told to whoever follows them.
func (s *Store) CountUsage(ctx context.Context, tenant uuid.UUID, read []session.Reading) error {
	return s.Seeing(WithCold).InTenant(ctx, tenant, func(tx pgx.Tx) error {
		changed := changedOf(read)
		batch := &pgx.Batch{}
		QueueUsage(batch, tenant, read).Query(func(rows pgx.Rows) error {
			behind, err := pgx.CollectRows(rows, pgx.RowTo[string])
			changed = append(changed, behind...)
			return err
		})
		if err := tx.SendBatch(ctx, batch).Close(); err != nil || len(changed) == 0 {
			return err
		}
		return s.changed(ctx, tx, tenant, changed)
	})
}

// changedOf returns the ids of the sessions that a process knows to have changed.
func changedOf(read []session.Reading) (ids []string) {
	for i := range read {
		if read[i].Changed {
			ids = append(ids, read[i].Session)
		}
	}
	return ids
}

func idsOf(read []session.Reading) []string {
	ids := make([]string, len(read))
	for i := range read {
		ids[i] = read[i].Session
	}
	return ids
}

// countStored counts what sessions have stored since they were counted last.
func (s *Store) countStored(ctx context.Context, tenant uuid.UUID, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	read := make([]session.Reading, len(ids))
	for i, id := range ids {
		read[i] = session.Reading{Session: id, Changed: true}
	}
	return s.CountUsage(ctx, tenant, read)
}

// QueueUsage queues the statements of CountUsage. The first locks what the second, which sees all that was committed
// before it had the locks, counts from. The second, which is returned, has the ids of the sessions that were behind.
func QueueUsage(batch *pgx.Batch, tenant uuid.UUID, read []session.Reading) *pgx.QueuedQuery {
	n := len(read)
	views, served := make([]int64, n), make([]int64, n)
	readBacks := make([]int64, n)
	for i := range read {
		views[i] = read[i].Views
		served[i] = read[i].TokensServed
		readBacks[i] = read[i].ReadBacks
	}
	ids := idsOf(read)
	batch.Queue(ledgerLockSQL, tenant, ids)
	return batch.Queue(ledgerCountSQL, tenant, ids, views, served, readBacks)
}
