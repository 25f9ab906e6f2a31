//go:build unix

// Package embedded runs a private PostgreSQL cluster in a directory, from PostgreSQL binaries found on the machine. The
// cluster listens on a Unix socket in its own directory and nowhere else.
//
// Start at Start. A data directory holds pgdata (the cluster), postgres.log (PostgreSQL's log) and lock (the process id
// of the program that runs it and the socket directory, under flock). Only Remove ever deletes a cluster.
//
// PostgreSQL refuses to run as root, so for root it runs as the owner of pgdata, at first as "postgres" or "nobody".
// That user often cannot reach the data directory (a clone below /root). On Linux PostgreSQL then gets the directory as
// an open file and the argument -D /proc/self/fd/3: following such a link needs no permission on the parents, and every
// child process inherits it. -D /proc/self/cwd does not work: initdb changes its working directory and returns by name.
//
// PostgreSQL stops with the program that started it. If the program is killed, Linux shuts PostgreSQL down (Pdeathsig);
// on other systems it runs until the next Start on the directory, which stops it first.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// What a client connects to, besides the socket directory.
const (
	User     = "varve"       // the superuser of the cluster, which makes logins
	Owner    = "varve_owner" // owns the database; it may make roles, and is no superuser
	Database = "varve"       // the database that Start creates
	Port     = "5432"        // names the socket's file; its directory is the cluster's own
)

// Config describes a cluster.
type Config struct {
	Dir       string       // the data directory; made if missing
	Log       *slog.Logger // nil logs nothing
	Ephemeral bool         // for tests: fast, and lost if the machine fails
}

// Server is a running cluster.
type Server struct {
	Config           // Dir is absolute
	SocketDir string // the directory of the socket: PGHOST for psql and pgbench

	binaries binaries
	account  account
	lock     *dirLock
	pid      int
	stopping atomic.Bool
	done     chan struct{}
	exit     error // of the postgres process; read after done
	release  func() error
}

// Start runs the cluster in cfg.Dir, which it creates if there is none, and returns when it accepts connections. ctx
// bounds the start only.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = dir
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL in %s: %w", dir, err)
	}
	return s, nil
}

func start(ctx context.Context, cfg Config) (_ *Server, err error) {
	// Root's cluster runs as another user, which must be able to pass; secret files have their own modes.
	if err := os.MkdirAll(cfg.Dir, 0o711); err != nil {
		return nil, err
	}
	s := &Server{Config: cfg, done: make(chan struct{})}
	if s.lock, err = acquire(ctx, cfg.Dir); err != nil {
		return nil, err
	}
	s.release = sync.OnceValue(s.cleanUp)
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	if err := s.launch(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Crash())
	}
	return s, nil
}

// prepare does everything before the postgres process: leftovers, binaries, account, cluster, socket directory.
func (s *Server) prepare(ctx context.Context) (err error) {
	if err := s.lock.stopLeftovers(ctx, s.Config); err != nil {
		return err
	}
	if s.binaries, err = binariesFor(s.pgdata()); err != nil {
		return err
	}
	if s.account, err = accountFor(s.pgdata()); err != nil {
		return err
	}
	if err := s.account.mustReach(s.binaries.dir); err != nil {
		return err
	}
	if err := s.ensureCluster(ctx); err != nil {
		return err
	}
	if s.SocketDir, err = s.account.socketDir(); err != nil {
		return err
	}
	return s.lock.record(s.SocketDir)
}

func (s *Server) pgdata() string { return filepath.Join(s.Dir, "pgdata") }

func (s *Server) logFile() string { return filepath.Join(s.Dir, "postgres.log") }

// DSN returns the URL of a database of the cluster, for the superuser.
func (s *Server) DSN(database string) string { return dsn(s.SocketDir, database, User) }

// DSNOf returns the URL of the database that Start creates, for a login: whoever may open the socket's directory may be
// any.
func (s *Server) DSNOf(login string) string { return dsn(s.SocketDir, Database, login) }

func dsn(socket, database, login string) string {
	query := url.Values{"host": {socket}, "port": {Port}, "user": {login}, "sslmode": {"disable"}}
	return "postgres:///" + url.PathEscape(database) + "?" + query.Encode()
}

// Done returns a channel that is closed when PostgreSQL has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns the reason why PostgreSQL ended by itself; nil while it runs and after Stop or Crash.
func (s *Server) Err() error {
	select {
	case <-s.done:
	default:
		return nil
	}
	if s.stopping.Load() {
		return nil
	}
	return fmt.Errorf("PostgreSQL ended by itself (%s); its log is %s", s.ended(), s.logFile())
}

// ended says how PostgreSQL ended: without an error, if somebody else has stopped it.
func (s *Server) ended() string {
	if s.exit == nil {
		return "exit status 0"
	}
	return s.exit.Error()
}

// Stop shuts PostgreSQL down cleanly: it ends all connections and waits until everything is on disk. If ctx ends first,
// PostgreSQL stops at once and recovers at its next start. Stopping twice is harmless.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.signal(syscall.SIGINT)
	select {
	case <-s.done:
		return s.release()
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.Crash())
	}
}

// Crash stops PostgreSQL at once, without a checkpoint, as pg_ctl stop -m immediate does. Start on the same directory
// recovers then.
func (s *Server) Crash() error {
	s.stopping.Store(true)
	s.signal(syscall.SIGQUIT)
	<-s.done
	return s.release()
}

// signal does nothing after PostgreSQL has ended: its process id may belong to another process then.
func (s *Server) signal(sig syscall.Signal) {
	select {
	case <-s.done:
	default:
		_ = syscall.Kill(s.pid, sig)
	}
}

func (s *Server) cleanUp() error {
	return errors.Join(os.RemoveAll(s.SocketDir), s.lock.release())
}
