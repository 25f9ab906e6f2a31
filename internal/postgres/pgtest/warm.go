package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/postgres"
)

// warm is a database whose pools have served other tests. What their connections have prepared is there still: in a new
// database that is most of what PostgreSQL does for a test of some requests.
type warm struct {
	name  string
	admin *pgx.Conn
	made  string   // what changes with anything but rows, and with those of the migrations, when it was new
	kept  []string // the tables that migrations have filled
	lent  int
	pools []*lentPool
}

type lentPool struct {
	*pgxpool.Pool
	dsn         string
	connections int
	taken       bool // by the test that has the database
}

// mostLent is how many tests get a database: what deleted rows leave behind stays, nobody vacuums.
const mostLent = 40

// NewWarm returns what New does, but the database may be one that other tests had before, with their pools: Pool. When
// the test ends, rows are deleted; a database in which anything else was changed is dropped.
func NewWarm(t testing.TB) string {
	t.Helper()
	c := get(t)
	w, err := c.lend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopTimeout)
		defer cancel()
		if err := c.takeBack(ctx, w, t.Failed()); err != nil {
			t.Error(err)
		}
	})
	return c.dsn(w.name)
}

// Pool returns a pool of the test's own as postgres.Open does; dsn is one of a database of New's or NewWarm's.
func Pool(t testing.TB, dsn string, connections int) *pgxpool.Pool {
	t.Helper()
	w := get(t).warmOf(dsn)
	if w != nil {
		for _, p := range w.pools {
			if !p.taken && p.dsn == dsn && p.connections == connections {
				p.taken = true
				return p.Pool
			}
		}
	}
	pool, err := postgres.Open(context.WithoutCancel(t.Context()), dsn, connections)
	if err != nil {
		t.Fatal(err)
	}
	if w == nil {
		t.Cleanup(pool.Close)
	} else {
		w.pools = append(w.pools, &lentPool{pool, dsn, connections, true})
	}
	return pool
}

// warmOf returns the warm database of a URL that a test has, nil for another.
func (c *cluster) warmOf(dsn string) *warm {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lent[strings.TrimPrefix(u.Path, "/")]
}

// lend returns a database that no other test has.
func (c *cluster) lend(ctx context.Context) (w *warm, err error) {
	c.mu.Lock()
	if n := len(c.warm); n > 0 {
		w, c.warm = c.warm[n-1], c.warm[:n-1]
	}
	c.mu.Unlock()
	if w == nil {
		w = &warm{name: fmt.Sprint(c.prefix, c.count.Add(1))}
		if err = c.copy(ctx, w.name, c.template()); err != nil {
			return nil, err
		}
		if w.admin, err = pgx.Connect(ctx, c.dsn(w.name)); err != nil {
			return nil, err
		}
		if err = w.remember(ctx); err != nil {
			return nil, err
		}
	}
	w.lent++
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lent[w.name] = w
	return w, nil
}

// takeBack empties a database, or drops it.
func (c *cluster) takeBack(ctx context.Context, w *warm, failed bool) error {
	c.mu.Lock()
	delete(c.lent, w.name)
	c.mu.Unlock()
	ours := w.acquired() + int64(len(w.pools)) // those of rests
	if failed || w.lent == mostLent || !w.rests(ctx) {
		return c.end(ctx, w)
	}
	asNew, err := w.empty(ctx)
	// A request that a test has left may write meanwhile, and be what is in the way.
	if err != nil || !asNew || w.acquired() != ours {
		return c.end(ctx, w)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warm = append(c.warm, w)
	return nil
}

func (c *cluster) end(ctx context.Context, w *warm) error {
	for _, pool := range w.pools {
		pool.Close()
	}
	stopLooking(c.dsn(w.name))
	return errors.Join(w.admin.Close(ctx), c.drop(ctx, w.name))
}

// remember notes how the database is, of which no test has had it.
func (w *warm) remember(ctx context.Context) error {
	return pgx.BeginFunc(ctx, w.admin, func(tx pgx.Tx) error {
		var each []string
		rows, err := tx.Query(ctx, `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, name := range names {
			each = append(each, `SELECT '`+name+`' WHERE EXISTS (SELECT FROM `+name+`)`)
		}
		if rows, err = tx.Query(ctx, strings.Join(each, ` UNION ALL `)); err != nil {
			return err
		}
		if w.kept, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		w.made, err = w.signature(ctx, tx)
		return err
	})
}

// empty deletes all rows but those of the migrations, and reports whether the database is as it was when it was new.
func (w *warm) empty(ctx context.Context) (asNew bool, err error) {
	err = pgx.BeginFunc(ctx, w.admin, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			SET LOCAL session_replication_role = replica; -- no trigger and no foreign key holds a row
			DO $$
			DECLARE
				name text;
			BEGIN
				FOR name IN
					SELECT oid::regclass
					  FROM pg_class
					 WHERE relkind = 'r'
					   AND relnamespace = 'public'::regnamespace
					   AND oid <> ALL ('{`+strings.Join(w.kept, ",")+`}'::regclass[])
				LOOP
					EXECUTE 'DELETE FROM ' || name;
				END LOOP;
				PERFORM setval(seqrelid::regclass, seqstart, false) FROM pg_sequence;
			END $$`)
		if err != nil {
			return err
		}
		now, err := w.signature(ctx, tx)
		asNew = now == w.made
		return err
	})
	return asNew, err
}

// rests reports whether no connection of the pools is in use, soon at least, and each answers and has no setting of a
// test's.
func (w *warm) rests(ctx context.Context) bool {
	for _, pool := range w.pools {
		for end := time.Now().Add(time.Second); pool.Stat().AcquiredConns() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return false
			}
		}
		pool.taken = false
		asNew := pool.Ping(ctx) == nil
		for _, conn := range pool.AcquireAllIdle(ctx) {
			var set bool
			err := conn.QueryRow(ctx, `
				SELECT EXISTS (SELECT FROM pg_settings WHERE source IN ('database', 'database user', 'session'))`,
			).Scan(&set)
			conn.Release()
			asNew = asNew && err == nil && !set
		}
		if !asNew {
			return false
		}
	}
	return true
}

// acquired returns how often a connection was taken from a pool.
func (w *warm) acquired() (count int64) {
	for _, pool := range w.pools {
		count += pool.Stat().AcquireCount()
	}
	return count
}

// catalogue are the tables that say what a database has besides rows: of each, which transactions wrote its rows.
const catalogue = "pg_class pg_attribute pg_attrdef pg_constraint pg_index pg_proc pg_trigger pg_policy pg_type " +
	"pg_namespace pg_extension pg_default_acl pg_statistic pg_statistic_ext"

// signature returns what changes with anything but rows, and with those of the migrations.
func (w *warm) signature(ctx context.Context, tx pgx.Tx) (signature string, err error) {
	var sums []string
	for _, table := range append(strings.Fields(catalogue), w.kept...) {
		sums = append(sums, `(SELECT concat(count(*), ':', sum(xmin::text::bigint)) FROM `+table+`)`)
	}
	sums = append(sums, `(SELECT xmin FROM pg_database WHERE datname = current_database())`,
		`(SELECT string_agg(setconfig::text, ',') FROM pg_db_role_setting)`)
	err = tx.QueryRow(ctx, `SELECT concat_ws(' ', `+strings.Join(sums, ", ")+`)`).Scan(&signature)
	return signature, err
}
