package pgtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// UntilOneWaitsFor returns when a statement waits for a transaction of a connection, and an error if none does for
// long. The transaction itself cannot tell: it sees the activity of its first look.
func UntilOneWaitsFor(t testing.TB, pool *pgxpool.Pool, pid uint32) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for waits := false; !waits; {
		err := pool.QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))`, pid).Scan(&waits)
		if err != nil {
			return fmt.Errorf("nobody waits for the transaction: %w", err)
		}
	}
	return nil
}
