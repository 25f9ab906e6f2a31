package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// TestAWarmDatabaseIsAsNew lends databases one after another. It is not parallel, so that no other test gets them.
func TestAWarmDatabaseIsAsNew(t *testing.T) {
	var dsn string
	var pool *pgxpool.Pool
	for _, c := range []struct {
		name, of, sql string // of whom, and what its test does
		again         bool   // the next test gets the database and the pool
	}{
		{"a row", "superuser", `
			INSERT INTO tenants (id, name) VALUES (gen_random_uuid(), 'acme');
			INSERT INTO river_queue (name, updated_at) VALUES ('q', now());
			SELECT nextval('river_job_id_seq')`, true},
		{"a table", "superuser", `CREATE TABLE t ()`, false},
		{"a trigger that is off", "superuser", `ALTER TABLE messages DISABLE TRIGGER ALL`, false},
		{"a row of the migrations", "superuser", `UPDATE schema_migrations SET dirty = true`, false},
		{"a limit of the database", "superuser", `
			DO $$ BEGIN
				EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 50', current_database());
			END $$`, false},
		{"statistics", "superuser", `ANALYZE schema_migrations`, false},
		{"a setting of a connection", "login", `SET work_mem = 1000`, false},
		{"dead connections", "superuser", `
			SELECT pg_terminate_backend(pid)
			  FROM pg_stat_activity
			 WHERE datname = current_database()
			   AND usename <> current_user`, false},
		{"nothing", "login", `SELECT 1`, true},
	} {
		var before string
		t.Run(c.name, func(t *testing.T) {
			dsn = pgtest.NewWarm(t)
			before, pool = dsn, pgtest.Pool(t, pgtest.Admin(dsn), 1)
			if other := pgtest.Pool(t, pgtest.Admin(dsn), 1); other == pool {
				t.Error("a test has one pool twice")
			}
			if c.of == "superuser" {
				_, err := connect(t, dsn).Exec(t.Context(), c.sql)
				if err != nil {
					t.Error(err)
				}
			} else if _, err := pool.Exec(t.Context(), c.sql); err != nil {
				t.Error(err)
			}
		})
		t.Run("after "+c.name, func(t *testing.T) {
			dsn = pgtest.NewWarm(t)
			if again := pgtest.Pool(t, pgtest.Admin(dsn), 1) == pool; again != c.again || (dsn == before) != c.again {
				t.Errorf("the next test gets the database: %v, and its pool: %v; want %v", dsn == before, again, c.again)
			}
			var rows, next int
			err := pgtest.Row(t, dsn, `
				SELECT (SELECT count(*) FROM tenants) + (SELECT count(*) FROM river_queue),
				       nextval('river_job_id_seq')`).Scan(&rows, &next)
			if err != nil || rows != 0 || next != 1 {
				t.Errorf("it has %d rows, the next job is %d, %v", rows, next, err)
			}
		})
	}
}
