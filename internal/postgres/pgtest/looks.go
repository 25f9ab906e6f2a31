package pgtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// looks are connections of the superuser by the URL of a database. A test that waits for something looks again and
// again, and a new connection costs PostgreSQL more than most statements.
var looks sync.Map

// Row returns the row of a statement that only reads, for the superuser; dsn is what New or a cluster has returned.
func Row(t testing.TB, dsn, sql string, args ...any) pgx.Row {
	t.Helper()
	pool, found := looks.Load(dsn)
	if !found {
		config, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		config.MaxConns = 2
		// Servers are restarted.
		config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
		made, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), config)
		if err != nil {
			t.Fatal(err)
		}
		if pool, found = looks.LoadOrStore(dsn, made); found {
			made.Close()
		}
	}
	return pool.(*pgxpool.Pool).QueryRow(t.Context(), sql, args...)
}

// stopLooking closes the connections that Row has to a database.
func stopLooking(dsn string) {
	if pool, found := looks.LoadAndDelete(dsn); found {
		pool.(*pgxpool.Pool).Close()
	}
}

// UntilOneWaitsFor returns when a statement waits for a transaction of a connection, and an error if none does for
// long. The transaction itself cannot tell: it sees the activity of its first look.
func UntilOneWaitsFor(t testing.TB, pool *pgxpool.Pool, pid uint32) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for waits := false; !waits; time.Sleep(5 * time.Millisecond) {
		err := pool.QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))`, pid).Scan(&waits)
		if err != nil {
			return fmt.Errorf("nobody waits for the transaction: %w", err)
		}
	}
	return nil
}
