package pgtest_test

import (
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

func insertTenant(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), `INSERT INTO tenants (id, name) VALUES (gen_random_uuid(), 'acme')`); err != nil {
		t.Fatal(err)
	}
}

func tenants(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM tenants`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEveryTestHasAnEmptyMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for range 3 {
		begin := time.Now()
		dsn := pgtest.New(t)
		t.Logf("database after %v", time.Since(begin))
		conn := connect(t, dsn)
		if n := tenants(t, conn); n != 0 {
			t.Errorf("a new database has %d tenants", n)
		}
		insertTenant(t, conn)
	}
}

func TestTheSharedClusterIsReachedByItsSocketDirectory(t *testing.T) {
	t.Parallel()
	s := pgtest.Server(t)
	conn := connect(t, "host="+s.SocketDir+" port="+embedded.Port+" user="+embedded.User+" dbname=postgres")
	var fsync string
	if err := conn.QueryRow(t.Context(), `SHOW fsync`).Scan(&fsync); err != nil || fsync != "off" {
		t.Errorf("fsync is %s, %v", fsync, err)
	}
}

func TestADurableClusterKeepsWhatWasCommittedBeforeACrash(t *testing.T) {
	t.Parallel()
	s := pgtest.NewDurable(t)
	insertTenant(t, connect(t, s.DSN(embedded.Database)))
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	s = pgtest.Restart(t, s)
	if n := tenants(t, connect(t, s.DSN(embedded.Database))); n != 1 {
		t.Errorf("after the crash there are %d tenants", n)
	}
	pool, err := postgres.Open(t.Context(), pgtest.API(s.DSN(embedded.Database)), 2)
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
}
