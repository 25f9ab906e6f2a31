package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/varve-dev/varve/test/harness"
)

// end ends a fault.
type end = func(ctx context.Context) error

// fault is one thing that goes wrong. begin brings it about, and returns what ends it after lasts, nil if it ends by
// itself.
type fault struct {
	name  string
	lasts time.Duration
	begin func(ctx context.Context, r *rig, random *rand.Rand) (end, error)
}

// faults returns all faults, by what they hit.
func faults() []fault {
	var all []fault
	for _, kind := range [][]fault{ofProcesses(), ofPostgreSQL(), ofNetworks(), ofStatements(), ofSettings()} {
		all = append(all, kind...)
	}
	return all
}

func ofProcesses() []fault {
	api := func(r *rig, random *rand.Rand) *harness.Process { return r.apis[random.IntN(copies)] }
	worker := func(r *rig, random *rand.Rand) *harness.Process { return r.workers[random.IntN(copies)] }
	return []fault{
		signalled("kill -9 api", api, syscall.SIGKILL),
		signalled("kill -9 worker", worker, syscall.SIGKILL),
		signalled("SIGTERM api", api, syscall.SIGTERM),
		signalled("SIGTERM worker", worker, syscall.SIGTERM),
		pause("SIGSTOP api", 3*time.Second, api),
		pause("SIGSTOP worker", 3*time.Second, worker),
		pause("SIGSTOP worker while its job is taken over", 12*time.Second, worker),
		{name: "kill -9 all workers", begin: func(_ context.Context, r *rig, _ *rand.Rand) (end, error) {
			for _, p := range r.workers {
				p.Signal(syscall.SIGKILL)
			}
			return nil, nil
		}},
	}
}

func signalled(name string, which func(*rig, *rand.Rand) *harness.Process, s syscall.Signal) fault {
	return fault{name: name, begin: func(ctx context.Context, r *rig, random *rand.Rand) (end, error) {
		p := which(r, random)
		r.whileCompacting(ctx)
		p.Signal(s)
		return nil, nil
	}}
}

// pause stops a process, and lets it go on as if nothing had happened.
func pause(name string, lasts time.Duration, which func(*rig, *rand.Rand) *harness.Process) fault {
	return fault{name: name, lasts: lasts,
		begin: func(ctx context.Context, r *rig, random *rand.Rand) (end, error) {
			p := which(r, random)
			r.whileCompacting(ctx)
			p.Signal(syscall.SIGSTOP)
			return func(context.Context) error { p.Signal(syscall.SIGCONT); return nil }, nil
		}}
}

// whileCompacting waits until a compaction runs, or for a second.
func (r *rig) whileCompacting(ctx context.Context) {
	for until := time.Now().Add(time.Second); time.Now().Before(until); sleep(ctx, 2*time.Millisecond) {
		var running bool
		err := r.database.pool().QueryRow(ctx, `
			SELECT EXISTS (
			       SELECT
			         FROM river_job
			        WHERE kind = 'compact' AND state = 'running')`).Scan(&running)
		if err != nil || running {
			return
		}
	}
}

func ofPostgreSQL() []fault {
	restart := func(name string, stop func(d *database) end) fault {
		return fault{name: name, begin: func(ctx context.Context, r *rig, _ *rand.Rand) (end, error) {
			r.restarting.Lock()
			defer r.restarting.Unlock()
			return nil, r.database.restart(ctx, stop(r.database))
		}}
	}
	return []fault{
		restart("fast restart", func(d *database) end { return d.stopFast }),
		restart("immediate restart", func(d *database) end { return d.stopAtOnce }),
		restart("kill -9 postmaster", func(d *database) end { return d.killPostmaster }),
		{name: "kill -9 backend", begin: func(ctx context.Context, r *rig, _ *rand.Rand) (end, error) {
			r.restarting.Lock()
			defer r.restarting.Unlock()
			if err := r.database.killBackend(ctx); err != nil {
				return nil, err
			}
			return nil, r.database.execute(ctx, `SELECT 1`)
		}},
		{name: "database away for 6 s", begin: func(ctx context.Context, r *rig, _ *rand.Rand) (end, error) {
			r.restarting.Lock()
			defer r.restarting.Unlock()
			return nil, r.database.restart(ctx, func(ctx context.Context) error {
				err := r.database.stopFast(ctx)
				sleep(ctx, 6*time.Second)
				return err
			})
		}},
	}
}

func ofNetworks() (all []fault) {
	places := []struct {
		name    string
		proxies func(*rig) []*proxy
	}{
		{"api-database", func(r *rig) []*proxy { return r.apiDB }},
		{"worker-database", func(r *rig) []*proxy { return r.workerDB }},
		{"client-api", func(r *rig) []*proxy { return r.front }},
	}
	for _, place := range places {
		of := func(what string, lasts time.Duration, begin func(*proxy), atEnd func(*proxy)) {
			all = append(all, fault{name: what + " " + place.name, lasts: lasts,
				begin: func(_ context.Context, r *rig, random *rand.Rand) (end, error) {
					p := place.proxies(r)[random.IntN(copies)]
					begin(p)
					return func(context.Context) error { atEnd(p); return nil }, nil
				}})
		}
		healed := func(p *proxy) { p.heal() }
		lost := func(p *proxy) { p.cut(); p.heal() }
		of("cut", 0, func(p *proxy) { p.cut() }, healed)
		of("refuse", 2*time.Second, func(p *proxy) { p.set(func() { p.refuse = true }); p.cut() }, healed)
		of("lose answers of", 500*time.Millisecond, func(p *proxy) { p.set(func() { p.lose = true }) }, healed)
		of("slow", 2*time.Second, func(p *proxy) { p.set(func() { p.latency = 30 * time.Millisecond }) }, healed)
		of("black hole", 5*time.Second, func(p *proxy) { p.set(func() { p.hole = true }) }, healed)
		of("black hole that forgets", 5*time.Second, func(p *proxy) { p.set(func() { p.hole = true }) }, lost)
	}
	return all
}

// ofStatements returns what others do in the same database.
func ofStatements() (all []fault) {
	for name, sql := range statements {
		all = append(all, fault{name: name,
			begin: func(ctx context.Context, r *rig, _ *rand.Rand) (end, error) {
				return nil, r.database.executeOnce(ctx, []string{sql})
			}})
	}
	return all
}

const others = `
	  FROM pg_stat_activity
	 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`

var statements = map[string]string{
	"terminate one": `SELECT pg_terminate_backend(pid)` + others + ` ORDER BY random() LIMIT 1`,
	"terminate all": `SELECT pg_terminate_backend(pid)` + others,
	"cancel all":    `SELECT pg_cancel_backend(pid)` + others,
	"lock sessions": locking(`LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE`, 3),
	"lock jobs":     locking(`LOCK TABLE river_job IN ACCESS EXCLUSIVE MODE`, 3),
	"lock rows":     locking(`PERFORM FROM sessions FOR UPDATE`, 6),
	"lock jobs, then sessions": locking(`
		PERFORM FROM river_job WHERE state = 'running' FOR UPDATE;
		PERFORM pg_sleep(0.2);
		PERFORM FROM sessions FOR UPDATE`, 0),
	"vacuum full": `VACUUM FULL sessions`,
	"reindex":     `REINDEX TABLE messages`,
}

// locking returns a statement that takes locks and holds them for some seconds.
func locking(statement string, seconds int) string {
	return fmt.Sprintf(`DO $$ BEGIN %s; PERFORM pg_sleep(%d); END $$`, statement, seconds)
}

// ofSettings returns faults that settings of PostgreSQL make.
func ofSettings() (all []fault) {
	for _, s := range [][2]string{
		{"lock_timeout", "5ms"},
		{"statement_timeout", "5ms"},
		{"idle_in_transaction_session_timeout", "2ms"},
		{"default_transaction_read_only", "on"},
		{"default_transaction_isolation", "serializable"},
	} {
		all = append(all, fault{name: s[0] + " " + s[1], lasts: 5 * time.Second,
			begin: func(ctx context.Context, r *rig, _ *rand.Rand) (end, error) {
				return r.database.set(ctx, s[0], s[1])
			}})
	}
	return append(all, fault{name: "connections exhausted", lasts: 5 * time.Second, begin: exhaust},
		fault{name: "lost jobs of a session that nobody uses", begin: loseJobs})
}

// exhaust cuts the connections of all processes, and takes those that are free then.
func exhaust(ctx context.Context, r *rig, _ *rand.Rand) (end, error) {
	for _, p := range slices.Concat(r.apiDB, r.workerDB) {
		p.cut()
	}
	return r.database.takeConnections(ctx)
}

// loseJobs fills a session that no writer uses beyond its hard limit while no worker works, and deletes all jobs.
func loseJobs(ctx context.Context, r *rig, random *rand.Rand) (end, error) {
	r.losing.Lock()
	defer r.losing.Unlock()
	for _, p := range r.workers {
		p.Signal(syscall.SIGSTOP)
		defer p.Signal(syscall.SIGCONT)
	}
	c := r.conversations[r.busy]
	for n := range 100 {
		var full bool
		err := r.database.pool().QueryRow(ctx, `
			SELECT context_tokens > window_tokens
			  FROM sessions
			 WHERE id = $1`, c.id).Scan(&full)
		if err != nil || full {
			break
		}
		id := fmt.Sprintf("quiet%d-%d", random.Uint32(), n)
		a := &attempt{id: id, writer: -1, messages: turn(c.format, id, random)}
		c.add(a)
		r.append(ctx, c, a, random)
	}
	return nil, r.database.execute(ctx, `DELETE FROM river_job WHERE kind = 'compact' AND finalized_at IS NULL`)
}
