//go:build unix

package embedded

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	pollEvery = 10 * time.Millisecond
	logLimit  = 8 << 20 // postgres.log is set aside at a start when it is larger
	tailBytes = 2 << 10 // how much of postgres.log an error quotes
)

// settings returns the settings of the cluster. stopLeftovers recognises its processes by cluster_name, which is in
// their titles.
func (s *Server) settings() []string {
	settings := []string{
		"listen_addresses=",
		"unix_socket_directories=" + s.SocketDir,
		"port=" + Port,
		"cluster_name=" + filepath.Base(s.SocketDir),
		"logging_collector=off",
		"log_destination=stderr",
	}
	if s.Ephemeral {
		return append(settings, "max_connections=500", "shared_buffers=128MB", "fsync=off", "synchronous_commit=off",
			"full_page_writes=off", "wal_level=minimal", "max_wal_senders=0", "autovacuum=off", "jit=off")
	}
	return append(settings, "max_connections=100", "shared_buffers=256MB", "fsync=on", "synchronous_commit=on",
		"full_page_writes=on")
}

// launch starts the postgres process.
func (s *Server) launch() error {
	log, err := openLog(s.logFile())
	if err != nil {
		return err
	}
	defer log.Close()
	var args []string
	for _, setting := range s.settings() {
		args = append(args, "-c", setting)
	}
	cmd, err := s.command(context.Background(), "postgres", s.pgdata(), args...)
	if err != nil {
		return err
	}
	defer closeAll(cmd.ExtraFiles)
	cmd.Stdout, cmd.Stderr = log, log
	return s.supervise(cmd)
}

// supervise starts cmd and waits for its end on one thread that does nothing else: the kernel sends the signal at the
// parent's death when the thread ends that started the process, not when the program ends.
func (s *Server) supervise(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		// Without this the thread would end with the goroutine, and with it other commands that it had started before.
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			s.exit = cmd.Wait()
			close(s.done)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.pid = cmd.Process.Pid
	return nil
}

// awaitReady returns when the database exists and accepts connections. Only ctx bounds the wait: a recovery may take
// long.
func (s *Server) awaitReady(ctx context.Context) error {
	return poll(ctx, func() (done bool, err error) {
		if err = s.ensureDatabase(ctx); err == nil {
			return true, nil
		}
		select {
		case <-s.done:
			return true, fmt.Errorf("it did not start (%s): %s", s.ended(), s.logTail())
		default:
			return false, err
		}
	})
}

// poll calls try until it is done. If ctx ends first, poll returns why, with the last error of try.
func poll(ctx context.Context, try func() (done bool, err error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		done, err := try()
		if done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

func (s *Server) ensureDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var database, owner bool
	err = conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1), EXISTS (SELECT FROM pg_roles WHERE rolname = $2)`,
		Database, Owner).Scan(&database, &owner)
	if err == nil && !owner {
		_, err = conn.Exec(ctx, `CREATE ROLE `+Owner+` LOGIN CREATEROLE`)
	}
	if err == nil && !database {
		_, err = conn.Exec(ctx, `CREATE DATABASE `+Database)
	}
	if err != nil {
		return err
	}
	return s.ensureOwner(ctx)
}

func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// logTail returns the end of postgres.log.
func (s *Server) logTail() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return "its log ends with\n" + string(bytes.TrimSpace(text[max(0, len(text)-tailBytes):]))
}
