package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
)

// database is a durable PostgreSQL that can be killed.
type database struct {
	dir  string
	aims []*proxy // that lead to it

	mu      sync.Mutex // held while it restarts
	server  *embedded.Server
	current atomic.Pointer[pgxpool.Pool]
}

// pool returns connections of the superuser, which go through no proxy.
func (d *database) pool() *pgxpool.Pool { return d.current.Load() }

// startDatabase starts the cluster in dir, and leads the proxies to it.
func startDatabase(ctx context.Context, dir string, aims []*proxy) (*database, error) {
	d := &database{dir: dir, aims: aims}
	return d, d.start(ctx)
}

// start starts PostgreSQL. The processes of one that was killed may need a moment to end.
func (d *database) start(ctx context.Context) (err error) {
	for range 40 {
		if d.server, err = embedded.Start(ctx, embedded.Config{Dir: d.dir}); err == nil {
			break
		}
		sleep(ctx, 250*time.Millisecond)
	}
	if err != nil {
		return err
	}
	return d.lead(ctx)
}

// lead leads the proxies, and the superuser, to the PostgreSQL that runs now.
func (d *database) lead(ctx context.Context) error {
	for _, p := range d.aims {
		p.aim("unix", filepath.Join(d.server.SocketDir, ".s.PGSQL."+embedded.Port))
	}
	pool, err := pgxpool.New(ctx, d.server.DSN(embedded.Database))
	if err != nil {
		return err
	}
	if before := d.current.Swap(pool); before != nil {
		before.Close()
	}
	return nil
}

// restart ends PostgreSQL in one of three ways, and starts it again.
func (d *database) restart(ctx context.Context, end func(ctx context.Context) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := end(ctx); err != nil {
		return err
	}
	return d.start(ctx)
}

// revive starts PostgreSQL again if it has ended.
func (d *database) revive(ctx context.Context) error {
	select {
	case <-d.server.Done():
		return d.restart(ctx, d.stopAtOnce)
	default:
		return nil
	}
}

func (d *database) stopFast(ctx context.Context) error { return d.server.Stop(ctx) }

func (d *database) stopAtOnce(context.Context) error { return d.server.Crash() }

// killPostmaster kills the first process of PostgreSQL, which leaves its children to find out.
func (d *database) killPostmaster(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(d.dir, "pgdata", "postmaster.pid"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-d.server.Done():
		return d.server.Crash() // releases the directory
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killBackend kills one backend that serves a process, at which PostgreSQL restarts all of them.
func (d *database) killBackend(ctx context.Context) error {
	var pid int
	err := d.pool().QueryRow(ctx, `
		SELECT pid
		  FROM pg_stat_activity
		 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
		 ORDER BY random()
		 LIMIT 1`).Scan(&pid)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// The logins of the processes.
const (
	apiLogin    = "chaos_api"
	workerLogin = "chaos_worker"
)

// grant makes the logins, and gives them the settings that Varve wants.
func (d *database) grant(ctx context.Context) error {
	return postgres.GrantTo(ctx, d.server.DSN(embedded.Database),
		postgres.Grant{Login: apiLogin, Role: postgres.AppRole, Make: true},
		postgres.Grant{Login: workerLogin, Role: postgres.WorkerRole, Make: true})
}

// set changes a setting of all processes' sessions, and returns what changes it back.
func (d *database) set(ctx context.Context, name, value string) (end, error) {
	alter := func(action string) []string {
		return []string{
			fmt.Sprintf(`ALTER ROLE %s %s`, apiLogin, action),
			fmt.Sprintf(`ALTER ROLE %s %s`, workerLogin, action),
			`SELECT pg_terminate_backend(pid)` + others,
		}
	}
	reset := func(ctx context.Context) error {
		return errors.Join(d.execute(ctx, alter(`RESET `+name)...), again(ctx, d.grant),
			d.execute(ctx, alter(`LOGIN`)...)) // which changes nothing, but ends the sessions
	}
	return reset, d.execute(ctx, alter(fmt.Sprintf(`SET %s = '%s'`, name, value))...)
}

// execute runs statements as the superuser, whatever defaults the faults have set.
func (d *database) execute(ctx context.Context, statements ...string) error {
	return again(ctx, func(ctx context.Context) error { return d.executeOnce(ctx, statements) })
}

// again tries for a minute: another fault may be in the way, one that keeps the database away and slows its start.
func again(ctx context.Context, do func(context.Context) error) (err error) {
	for range 240 {
		if err = do(ctx); err == nil {
			return nil
		}
		sleep(ctx, 250*time.Millisecond)
	}
	return err
}

func (d *database) executeOnce(ctx context.Context, statements []string) error {
	conn, err := d.pool().Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	settings := []string{`SET statement_timeout = 0`, `SET lock_timeout = 0`, `SET default_transaction_read_only = off`,
		`SET default_transaction_isolation = 'read committed'`}
	for _, statement := range append(settings, statements...) {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func (d *database) stop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pool().Close()
	return d.server.Crash()
}

// takeConnections takes all connections that PostgreSQL has, and returns what gives them back.
func (d *database) takeConnections(ctx context.Context) (release func(context.Context) error, err error) {
	var limit int
	if err := d.pool().QueryRow(ctx, `SELECT current_setting('max_connections')::integer`).Scan(&limit); err != nil {
		return nil, err
	}
	var held []*pgx.Conn
	for range limit {
		conn, err := pgx.Connect(ctx, d.server.DSN(embedded.Database))
		if err != nil {
			break
		}
		held = append(held, conn)
	}
	return func(ctx context.Context) error {
		var failed []error
		for _, conn := range held {
			failed = append(failed, conn.Close(ctx))
		}
		return errors.Join(failed...)
	}, nil
}
