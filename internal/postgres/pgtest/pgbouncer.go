package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/embedded"
)

// PgBouncer is a PgBouncer of the test's own in front of the cluster that the tests of this process share.
type PgBouncer struct {
	test   testing.TB
	socket string
}

const bouncerPort = "6432" // of a socket in a directory of its own

// NewPgBouncer starts a PgBouncer in a mode of pooling, which ends with the test. The test is skipped where there is
// none.
func NewPgBouncer(t testing.TB, mode string) *PgBouncer {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("PgBouncer is not installed (Debian, Ubuntu: apt-get install pgbouncer)")
	}
	dir, err := os.MkdirTemp("/tmp", "varve-bouncer-") // a path that is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	server := Server(t)
	configure(t, server, dir, mode)
	cmd := exec.Command(program, filepath.Join(dir, "pgbouncer.ini"))
	cmd.SysProcAttr = asOwner(t, server, dir)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	})
	socket := filepath.Join(dir, ".s.PGSQL."+bouncerPort)
	for end := time.Now().Add(startTimeout); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return &PgBouncer{t, dir}
		}
		if time.Now().After(end) {
			t.Fatal("PgBouncer does not start")
		}
	}
}

// configure writes the files of a PgBouncer in front of a cluster.
func configure(t testing.TB, server *embedded.Server, dir, mode string) {
	t.Helper()
	users := ""
	for _, login := range []string{embedded.User, ownerLogin, apiLogin, workerLogin, adminLogin, backupLogin} {
		users += fmt.Sprintf("%q %q\n", login, password)
	}
	servers := enough // in transaction mode more clients share them
	if mode == "session" {
		servers = 20
	}
	settings := fmt.Sprintf("[databases]\n* = host=%s port=5432\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = %s\n"+
		"listen_port = %s\nauth_type = trust\nauth_file = %s\npool_mode = %s\ndefault_pool_size = %d\n",
		server.SocketDir, dir, bouncerPort, filepath.Join(dir, "users.txt"), mode, servers)
	for name, text := range map[string]string{"users.txt": users, "pgbouncer.ini": settings} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// asOwner lets root start a program that refuses root as the user whom the cluster runs as, and who alone reaches its
// socket. That user gets a directory.
func asOwner(t testing.TB, s *embedded.Server, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	data := filepath.Join(s.Dir, "pgdata")
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := ownLike(dir, data); err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
}

// Through returns the URL of a database that leads through PgBouncer. settings are further ones of the URL, in pairs.
func (b *PgBouncer) Through(dsn string, settings ...string) string {
	b.test.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		b.test.Fatal(err)
	}
	values := url.Values{"host": {b.socket}, "port": {bouncerPort}, "sslmode": {"disable"}}
	values.Set("user", query(u, "user"))
	values.Set("password", query(u, "password"))
	for i := 0; i < len(settings); i += 2 {
		values.Set(settings[i], settings[i+1])
	}
	return "postgres:///" + u.Path[1:] + "?" + values.Encode()
}
