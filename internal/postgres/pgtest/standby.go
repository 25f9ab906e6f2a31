package pgtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
)

// NewStandby makes a standby of a durable cluster by pg_basebackup -R, and starts it. The test is skipped where
// PostgreSQL's programs have no pg_basebackup.
func NewStandby(t testing.TB, primary *embedded.Server) *embedded.Server {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "pgdata")
	program := baseBackup(t, primary)
	cmd := exec.CommandContext(t.Context(), program, "-R", "-D", data, "--checkpoint=fast", "--no-sync",
		"-h", primary.SocketDir, "-p", embedded.Port, "-U", embedded.User)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := ownLike(data, filepath.Join(primary.Dir, "pgdata")); err != nil {
		t.Fatal(err)
	}
	return startDurable(t, dir)
}

func baseBackup(t testing.TB, s *embedded.Server) (program string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	err = conn.QueryRow(t.Context(), `
		SELECT setting || '/pg_basebackup'
		  FROM pg_config
		 WHERE name = 'BINDIR'`).Scan(&program)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
		t.Skipf("there is no %s: this PostgreSQL comes without the program that makes standbys", program)
	}
	return program
}

// ownLike gives a directory with all that is in it to the owner of another: root's cluster runs as another user.
func ownLike(dir, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	})
}

// Exec runs statements as the superuser of a cluster, in Varve's database.
func Exec(t testing.TB, s *embedded.Server, sql ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN(embedded.Database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range sql {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(statement), err)
		}
	}
}
