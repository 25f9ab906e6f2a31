package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

func TestAnErrorOfAPoolerSaysWhatToSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ code, message, want string }{
		{"42P05", `prepared statement "stmtcache_1" already exists`, "default_query_exec_mode=cache_describe"},
		{"26000", `prepared statement "stmtcache_1" does not exist`, "default_query_exec_mode=cache_describe"},
		{"08P01", "unsupported startup parameter: lock_timeout", "PostgreSQL itself"},
		{"08P01", "invalid message format", ""},
		{"42P01", "relation does not exist", ""},
	} {
		err := error(&pgconn.PgError{Code: c.code, Message: c.message})
		if got := postgres.Pooled(err); !errors.Is(got, err) || !strings.Contains(got.Error(), c.want) || (c.want == "") != (got == err) {
			t.Errorf("%s %s: %v", c.code, c.message, got)
		}
	}
}

// describing is the setting with which a transaction pooler can be in between.
var describing = []string{"default_query_exec_mode", "cache_describe"}

// TestASuperuserIsRefusedAtEveryStartBehindAPooler: it must not depend on which connection the pooler gives.
func TestASuperuserIsRefusedAtEveryStartBehindAPooler(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	pooler := pgtest.NewPooler(t)
	for range 20 {
		if pool, err := postgres.Open(t.Context(), pooler.Through(dsn, describing...), 4); !errors.Is(err, postgres.ErrLogin) || !strings.Contains(err.Error(), "superuser") {
			t.Fatalf("it starts: %v, %v", pool, err)
		}
		if pool, err := postgres.Open(t.Context(), pooler.Through(dsn), 4); !errors.Is(err, postgres.ErrLogin) && !errors.Is(err, postgres.ErrPooler) {
			t.Fatalf("it starts: %v, %v", pool, err)
		}
	}
	if pooler.Opened(dsn) < 2 {
		t.Error("the pooler had one connection: it swapped none")
	}
}

// TestAPoolerIsRecognizedAtEveryStart has one pooler that gives a client another connection for each transaction, and one
// that does so only under load.
func TestAPoolerIsRecognizedAtEveryStart(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	for _, last := range []bool{false, true} {
		pooler := pgtest.NewPooler(t)
		pooler.Last = last
		for range 5 {
			if _, err := postgres.Open(t.Context(), pooler.Through(pgtest.API(dsn)), 4); !errors.Is(err, postgres.ErrPooler) || !strings.Contains(err.Error(), "default_query_exec_mode=cache_describe") {
				t.Errorf("an API, last %t: %v", last, err)
			}
			if _, err := postgres.OpenAdmin(t.Context(), pooler.Through(pgtest.Admin(dsn)), 4); !errors.Is(err, postgres.ErrPooler) || !strings.Contains(err.Error(), "cache_describe") {
				t.Errorf("an operator's command, last %t: %v", last, err)
			}
		}
		for _, through := range []string{pooler.Through(dsn), pooler.Through(dsn, describing...)} {
			err := errors.Join(postgres.Migrate(t.Context(), through),
				postgres.GrantTo(t.Context(), through, postgres.Grant{Login: "varve_test_api", Role: postgres.AppRole}))
			if !errors.Is(err, postgres.ErrPooler) || strings.Count(err.Error(), "leads to PostgreSQL itself") != 2 {
				t.Errorf("migrate, last %t: %v", last, err)
			}
		}
		mustMigrate(t, dsn) // nobody holds the lock of migrations
	}
}

func TestAWayToSendStatementsThatDoesNotWorkIsRefused(t *testing.T) {
	t.Parallel()
	dsn := pgtest.API(pgtest.New(t))
	for _, mode := range []string{"exec", "simple_protocol"} {
		if _, err := postgres.Open(t.Context(), dsn+"&default_query_exec_mode="+mode, 1); !errors.Is(err, postgres.ErrPooler) || !strings.Contains(err.Error(), "default_query_exec_mode="+mode+" cannot") {
			t.Errorf("%s: %v", mode, err)
		}
	}
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec"} {
		pool, err := postgres.Open(t.Context(), dsn+"&default_query_exec_mode="+mode, 1)
		if err != nil {
			t.Errorf("%s: %v", mode, err)
			continue
		}
		pool.Close()
	}
}

// TestRowLevelSecurityHoldsOnEveryConnectionOfAPooler appends for two tenants at once, and reads as one of them on every
// connection that the pooler has.
func TestRowLevelSecurityHoldsOnEveryConnectionOfAPooler(t *testing.T) {
	t.Parallel()
	admin, dsn := newStoreAt(t)
	api, pooler := pgtest.API(dsn), pgtest.NewPooler(t)
	store := openStore(t, pooler.Through(api, describing...))
	var writers sync.WaitGroup
	tenants := []uuid.UUID{newTenant(t, admin, "a"), newTenant(t, admin, "b")}
	for _, tenant := range tenants {
		at := newSession(t, store, tenant, "s")
		for range 4 {
			writers.Go(func() {
				for range 10 {
					if _, _, err := store.Append(t.Context(), batch(at, message("x", 10))); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	writers.Wait()
	seen := map[int]bool{}
	for range 4 * pooler.Opened(api) {
		err := postgres.InTenant(t.Context(), store.Pool(), tenants[0], pgx.TxOptions{}, func(tx pgx.Tx) error {
			var pid, messages, foreign int
			var login string
			err := tx.QueryRow(t.Context(), `
				SELECT pg_backend_pid(), session_user, count(*), count(*) FILTER (WHERE tenant_id <> $1)
				  FROM messages`, tenants[0]).Scan(&pid, &login, &messages, &foreign)
			if seen[pid] = true; messages != 40 || foreign != 0 || login != "varve_test_api" {
				t.Errorf("connection %d of %s shows %d messages, %d of them of others", pid, login, messages, foreign)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if tenants, err := store.Tenants(t.Context()); err != nil || len(tenants) != 0 {
			t.Fatalf("without a tenant it sees %v, %v", tenants, err)
		}
	}
	if len(seen) < 2 {
		t.Errorf("the pooler used %d connections", len(seen))
	}
	if found, err := store.Session(t.Context(), session.Address{Tenant: tenants[1], ID: "s"}); err != nil || found.LastSeq != 40 {
		t.Errorf("the other tenant's session is %+v, %v", found, err)
	}
}
