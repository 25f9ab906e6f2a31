package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/test/harness"
)

// rig is an API and a worker within their limits, and the PostgreSQL that they use, without one.
type rig struct {
	options  options
	found    *findings
	database *embedded.Server
	api      *process
	worker   *process
	key      string
	sessions []*conversation
}

// The logins of the processes.
const (
	apiLogin    = "memory_api"
	workerLogin = "memory_worker"
)

func startRig(ctx context.Context, o options) (_ *rig, err error) {
	r := &rig{options: o, found: &findings{answers: map[string]int{}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.stop())
		}
	}()
	if _, err := harness.Build(ctx, o.dir, nil); err != nil {
		return nil, err
	}
	if r.database, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(o.dir, "database")}); err != nil {
		return nil, err
	}
	if err := r.setUp(ctx); err != nil {
		return nil, err
	}
	if r.api, err = r.start(ctx, "api", "VARVE_ADDR", apiLogin); err != nil {
		return nil, err
	}
	r.worker, err = r.start(ctx, "worker", "VARVE_METRICS_ADDR", workerLogin, "VARVE_SWEEP_INTERVAL=2s",
		"VARVE_JOB_TIMEOUT=10m", "VARVE_COMPACTIONS="+strconv.Itoa(o.sessions))
	return r, err
}

// setUp makes the schema, the logins, and a tenant with a key.
func (r *rig) setUp(ctx context.Context) error {
	dsn := r.database.DSN(embedded.Database)
	err := postgres.Migrate(ctx, r.database.DSNOf(embedded.Owner))
	if err == nil {
		err = postgres.GrantTo(ctx, dsn,
			postgres.Grant{Login: apiLogin, Role: postgres.AppRole, Make: true},
			postgres.Grant{Login: workerLogin, Role: postgres.WorkerRole, Make: true})
	}
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	jobs, err := queue.New(pool)
	if err != nil {
		return err
	}
	store := postgres.New(pool, jobs, nil)
	tenant, err := store.CreateTenant(ctx, "memory", policy.StoredDefault())
	if err != nil {
		return err
	}
	key := session.NewAPIKey(tenant.ID)
	_, err = store.CreateKey(ctx, tenant.ID, session.NewKey{Name: "memory", Text: key, Scopes: session.KeyScopes()})
	r.key = key
	return err
}

// process is a program within its limit.
type process struct {
	*confinement
	name  string
	cmd   *exec.Cmd
	addr  string        // of its API, or of its metrics
	ended chan struct{} // closed when it has
	err   error         // how it ended
}

// start starts a program that listens on the address in a variable and logs in as login, and waits until it is ready.
func (r *rig) start(ctx context.Context, name, variable, login string, env ...string) (_ *process, err error) {
	p := &process{confinement: confine(name, r.options.limit), name: name, ended: make(chan struct{})}
	if p.addr, err = freeAddress(); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	p.cmd = p.command(ctx, filepath.Join(r.options.dir, name))
	if p.cmd.Env == nil {
		p.cmd.Env = os.Environ()
	}
	dsn := url.URL{Scheme: "postgres", User: url.User(login), Path: "/" + embedded.Database,
		RawQuery: url.Values{"host": {r.database.SocketDir}, "port": {embedded.Port}}.Encode()}
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Env = append(p.cmd.Env, variable+"="+p.addr, "VARVE_MEMORY=", "VARVE_LOG_FORMAT=text",
		"DATABASE_URL="+dsn.String())
	lines, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close() // the process has its own
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		lines.Close()
		return nil, errors.Join(err, p.remove())
	}
	log, err := os.Create(filepath.Join(r.options.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go copyLog(lines, log, ready)
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	select {
	case <-ready:
		return p, nil
	case <-p.ended:
		return p, fmt.Errorf("%s ended: %w; see %s", name, p.err, log.Name())
	case <-time.After(time.Minute):
		return p, fmt.Errorf("%s is not ready after a minute; see %s", name, log.Name())
	}
}

// freeAddress returns an address on which nobody listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// copyLog writes the lines of a process to its log, and closes ready at the one that says so.
func copyLog(lines io.ReadCloser, log io.WriteCloser, ready chan<- struct{}) {
	defer lines.Close()
	defer log.Close()
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 4<<20)
	isReady := sync.OnceFunc(func() { close(ready) })
	for scanner.Scan() {
		fmt.Fprintln(log, scanner.Text())
		if strings.Contains(scanner.Text(), `msg=ready`) {
			isReady()
		}
	}
}

// stop ends the process, which may have died. It may be nil.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-p.ended
	return p.remove()
}

func (r *rig) stop() error {
	err := errors.Join(r.api.stop(), r.worker.stop())
	if r.database != nil {
		err = errors.Join(err, r.database.Crash())
	}
	return err
}

// measure adds what the processes needed to the table, and finds those that died or had more than their limit.
func (r *rig) measure() {
	const mega = 1_000_000
	r.found.row("%-8s %-26s %10s %10s %10s %10s", "process", "limit by", "limit MB", "it found", "peak RSS", "charged")
	for _, p := range []*process{r.api, r.worker} {
		peak, program := peakMemory(p.cmd.Process.Pid)
		select {
		case <-p.ended:
			r.found.add("%s died: %v", p.name, p.err)
			continue
		default:
		}
		found := p.foundLimit()
		r.found.row("%-8s %-26s %10d %10d %10d %10d", p.name, p.how(), p.limit/mega, found/mega, peak/mega,
			p.charged()/mega)
		if peak == 0 || peak-program >= p.limit {
			r.found.add("%s had %d bytes of memory, its limit is %d", p.name, peak, p.limit)
		}
		if found > p.limit || found < p.limit/2 {
			r.found.add("%s found a limit of %d bytes, it is %d", p.name, found, p.limit)
		}
	}
}

// foundLimit returns the limit that a process keeps within by its metrics; 0 if it does not tell.
func (p *process) foundLimit() int64 {
	response, err := http.Get("http://" + p.addr + "/metrics")
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "varve_memory_limit_bytes "); ok {
			n, _ := strconv.ParseFloat(value, 64) // a gauge
			return int64(n)
		}
	}
	return 0
}
