package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
)

// site is a checkout's programs, which serve a database that they made themselves: another checkout may have another
// schema.
type site struct {
	dir     string // of its binaries and logs
	dsn     string
	serving string    // the URL of the login that the processes serve with
	admin   *pgx.Conn // the superuser: counts, and is not measured
	tenant  uuid.UUID
	key     string
	servers []*server
	env     []string        // of its processes, beside what all have
	addr    string          // the API's
	made    map[string]bool // sessions that measurements share
}

// openSite builds a checkout's programs and starts them. What it has started when it fails, bench.close ends.
func (b *bench) openSite(ctx context.Context, name, checkout string, env ...string) (*site, error) {
	b.progress("build and start %s", checkout)
	s := &site{dir: filepath.Join(b.dir, name), dsn: b.cluster.DSN("bench_" + name), env: env, made: map[string]bool{}}
	s.serving = s.dsn
	b.sites = append(b.sites, s)
	_, err := s.output(ctx, "go", "build", "-C", checkout, "-o", s.dir+string(filepath.Separator),
		"./cmd/api", "./cmd/worker", "./cmd/varve")
	if err != nil {
		return s, fmt.Errorf("build %s: %w", checkout, err)
	}
	if err := s.createDatabase(ctx, b.cluster.DSN("postgres"), "bench_"+name); err != nil {
		return s, fmt.Errorf("database of %s: %w", checkout, err)
	}
	api, err := s.start("api", "--addr", "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	s.addr = api.addr
	s.servers = append(s.servers, api)
	worker, err := s.start("worker")
	if err == nil {
		s.servers = append(s.servers, worker)
	}
	return s, err
}

// createDatabase makes the database, its schema, a tenant and a key.
func (s *site) createDatabase(ctx context.Context, root, name string) error {
	conn, err := pgx.Connect(ctx, root)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+name); err != nil {
		return err
	}
	varve := filepath.Join(s.dir, "varve")
	if _, err := s.output(ctx, varve, "migrate"); err != nil {
		return err
	}
	tenant, err := s.output(ctx, varve, "tenants", "create", "bench")
	if err != nil {
		return err
	}
	if s.tenant, err = uuid.Parse(tenant); err != nil {
		return err
	}
	if s.key, err = s.output(ctx, varve, "keys", "create", "--tenant", "bench"); err != nil {
		return err
	}
	if err := s.login(ctx, conn, varve); err != nil {
		return err
	}
	s.admin, err = pgx.Connect(ctx, s.dsn)
	return err
}

// servingLogin is the login that the processes serve with: a worker's, which may do what an API does, too.
const servingLogin = "varve_bench"

// login makes the login that the processes serve with. Those of a checkout from before there were such logins serve as
// the superuser.
func (s *site) login(ctx context.Context, conn *pgx.Conn, varve string) error {
	if help, err := s.output(ctx, varve, "migrate", "--help"); err != nil || !strings.Contains(help, "--grant-to") {
		return err
	}
	_, err := conn.Exec(ctx, `
		DO $$ BEGIN
			IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '`+servingLogin+`') THEN
				CREATE ROLE `+servingLogin+` LOGIN;
			END IF;
		END $$`)
	if err != nil {
		return err
	}
	s.serving = strings.Replace(s.dsn, "user="+embedded.User, "user="+servingLogin, 1)
	_, err = s.output(ctx, varve, "migrate", "--grant-to", servingLogin+":worker")
	return err
}

// output runs a program and returns what it printed, without the line's end.
func (s *site) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.dsn)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, complaint.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// server is one of a site's processes.
type server struct {
	name   string
	addr   string // the API's
	cmd    *exec.Cmd
	log    *os.File
	stop   context.CancelFunc // asks the process to end, and kills it after stopTimeout
	exited chan struct{}
}

const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// start runs a process and waits until it logs that it is ready. Its log goes to a file, as in production.
func (s *site) start(name string, args ...string) (*server, error) {
	log, err := os.CreateTemp(s.dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.Background()) // an interrupted bench stops it by close
	p := &server{name: name, log: log, stop: stop, exited: make(chan struct{})}
	p.cmd = exec.CommandContext(running, filepath.Join(s.dir, name), args...)
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopTimeout
	p.cmd.Env = append(append(os.Environ(), s.env...), "DATABASE_URL="+s.serving)
	p.cmd.Stdout = log
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		stop()
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	if err := p.awaitReady(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

var (
	readyLine = regexp.MustCompile(`msg=ready(?: addr=(\S+))?`)
	errorLine = regexp.MustCompile(`.*level=ERROR.*`)
)

// awaitReady reads the log until it has the line of a process that is ready.
func (p *server) awaitReady() error {
	for start := time.Now(); time.Since(start) < startTimeout; {
		if match := readyLine.FindStringSubmatch(p.text()); match != nil {
			p.addr = match[1]
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-p.exited:
			return fmt.Errorf("%s ended at once: %s", p.name, p.text())
		}
	}
	return fmt.Errorf("%s did not get ready: %s", p.name, p.text())
}

// text returns what the process logged.
func (p *server) text() string {
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// close ends the process gracefully, or by force if it takes too long.
func (p *server) close() error {
	p.stop()
	<-p.exited
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s did not stop gracefully: %s", p.name, p.cmd.ProcessState)
	}
	return p.log.Close()
}

// complaints returns the errors that the processes of all sites logged.
func (b *bench) complaints() string {
	var lines strings.Builder
	for _, s := range b.sites {
		for _, p := range s.servers {
			lines.WriteString(strings.Join(errorLine.FindAllString(p.text(), 5), "\n"))
		}
	}
	return lines.String()
}

func (s *site) close(ctx context.Context) error {
	var errs []error
	for _, p := range s.servers {
		errs = append(errs, p.close())
	}
	if s.admin != nil {
		errs = append(errs, s.admin.Close(ctx))
	}
	return errors.Join(errs...)
}

// unbound puts the trigger of sessions with the widest window out of reach: they grow beyond what any model takes.
func (s *site) unbound(ctx context.Context) error {
	_, err := s.admin.Exec(ctx, `
		UPDATE sessions
		   SET window_tokens = 2000000000
		 WHERE tenant_id = $1 AND window_tokens = $2`, s.tenant.String(), widestWindow)
	return err
}

// checkLog returns an error unless the seqs of every session are dense and end where its row says: nothing was lost or
// stored twice.
func (s *site) checkLog(ctx context.Context) error {
	var broken int
	err := s.admin.QueryRow(ctx, `
		SELECT count(*)
		  FROM sessions s,
		       LATERAL (SELECT count(*) AS n, coalesce(max(m.seq), 0) AS last
		                  FROM messages m
		                 WHERE m.tenant_id = s.tenant_id AND m.session_key = s.key) m
		 WHERE s.tenant_id = $1 AND (m.n <> s.last_seq OR m.last <> s.last_seq)`, s.tenant.String()).Scan(&broken)
	if err == nil && broken > 0 {
		err = fmt.Errorf("%d sessions have gaps or messages beyond their last seq", broken)
	}
	return err
}
