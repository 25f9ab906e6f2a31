//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// ensureCluster creates the cluster if there is none. It does so in pgdata.tmp, which it renames at the end, so that an
// interrupted attempt leaves nothing that looks like a cluster.
func (s *Server) ensureCluster(ctx context.Context) error {
	if _, err := os.Stat(s.pgdata()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	unfinished := s.pgdata() + ".tmp"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := os.Mkdir(unfinished, 0o700); err != nil {
		return err
	}
	if err := s.account.own(unfinished); err != nil {
		return err
	}
	s.Log.InfoContext(ctx, "making a PostgreSQL cluster", "dir", s.Dir, "version", s.binaries.major)
	if err := s.initdb(ctx, unfinished); err != nil {
		return err
	}
	if err := os.Rename(unfinished, s.pgdata()); err != nil {
		return err
	}
	return syncDir(s.Dir)
}

func (s *Server) initdb(ctx context.Context, dir string) error {
	locale := "C"
	if runtime.GOOS == "linux" {
		locale = "C.UTF-8"
	}
	args := []string{"-U", User, "--encoding=UTF8", "--locale=" + locale,
		"--auth-local=trust", "--auth-host=reject"}
	if s.Ephemeral {
		args = append(args, "--no-sync")
	} else {
		args = append(args, "--data-checksums")
	}
	cmd, err := s.command(ctx, "initdb", dir, args...)
	if err != nil {
		return err
	}
	defer closeAll(cmd.ExtraFiles)
	// Its children hold the output open, so killing initdb alone would leave Wait waiting for them.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// command returns a command on the cluster in dir, whose ExtraFiles the caller must close. It runs as the account, in
// its own process group: a Ctrl-C at the terminal must reach the program only, which stops PostgreSQL last.
func (s *Server) command(ctx context.Context, name, dir string, args ...string) (*exec.Cmd, error) {
	place, inherit, err := s.account.place(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.binaries.dir, name), append([]string{"-D", place}, args...)...)
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.ExtraFiles = inherit
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.account.credential()}
	endWithParent(cmd.SysProcAttr)
	return cmd, nil
}

// environment returns the environment without the variables that change how PostgreSQL runs.
func environment() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_") && !strings.HasPrefix(entry, "LANG") {
			env = append(env, entry)
		}
	}
	return env
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Remove deletes a cluster with its directory, after stopping what is left of its processes. It returns ErrRunning if a
// process runs the cluster, and os.ErrNotExist if none ever did.
func Remove(ctx context.Context, dir string) error {
	if last, err := readHolder(dir); err != nil || last.pid == 0 {
		return errors.Join(err, os.ErrNotExist) // locking it might come between a process and its first start
	}
	lock, err := acquire(ctx, dir)
	if err != nil {
		return err
	}
	if err := lock.stopLeftovers(ctx, Config{Dir: dir}); err != nil {
		return errors.Join(err, lock.release())
	}
	return errors.Join(os.RemoveAll(dir), lock.release())
}
