//go:build unix

package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
)

// childDir makes the test binary a program that runs the cluster in that directory until it is killed.
const childDir = "EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	code := m.Run()
	_ = os.RemoveAll(begunDir)
	os.Exit(code)
}

// begunDir has a cluster that was stopped, which tests copy that are not about its beginning: initdb takes longer than
// they do. begin makes it once.
var (
	begunDir string
	begin    = sync.OnceValue(func() (err error) {
		if begunDir, err = os.MkdirTemp("", "varve-begun-"); err != nil {
			return err
		}
		s, err := embedded.Start(context.Background(), embedded.Config{Dir: begunDir, Ephemeral: true})
		if err != nil {
			return err
		}
		return s.Stop(context.Background())
	})
)

// copyBegun returns a directory with a copy of that cluster.
func copyBegun(t *testing.T) string {
	t.Helper()
	if err := begin(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", begunDir, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func child(dir string) int {
	s, err := embedded.Start(context.Background(), embedded.Config{Dir: dir, Ephemeral: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	<-s.Done()
	return 1
}

// createKept commits so that it survives a kill -9 on an ephemeral cluster too.
const createKept = `SET synchronous_commit = on; CREATE TABLE kept ()`

// program is another process that runs a cluster.
type program struct {
	cmd      *exec.Cmd
	postgres int
}

func startProgram(t *testing.T, dir string) program {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the program printed %q", line)
	}
	return program{cmd, postmaster(t, dir)}
}

// postmaster returns the process id of the PostgreSQL that runs in dir.
func postmaster(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pgdata", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("postmaster.pid begins with %q", first)
	}
	return pid
}

func (p program) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed, which Wait calls an error
}

func start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	begin := time.Now()
	s, err := embedded.Start(ctx, embedded.Config{Dir: dir, Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started after %v", time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() { _ = s.Crash() })
	return s
}

func run(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func mustStop(t *testing.T, s *embedded.Server) {
	t.Helper()
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("after Stop, Err is %v", err)
	}
	if _, err := os.Stat(s.SocketDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Stop, the socket directory: %v", err)
	}
}

func TestStopAndStartKeepTheData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir)
	run(t, s.DSN(embedded.Database), createKept)
	mustStop(t, s)
	s = start(t, dir)
	run(t, s.DSN(embedded.Database), `DROP TABLE kept`)
	mustStop(t, s)
}

func TestTheClusterListensOnItsSocketOnly(t *testing.T) {
	t.Parallel()
	s := start(t, copyBegun(t))
	run(t, s.DSN("postgres"), `
		DO $$ BEGIN
			ASSERT current_setting('listen_addresses') = '';
			ASSERT current_setting('server_encoding') = 'UTF8';
			ASSERT current_user = 'varve';
		END $$`)
	info, err := os.Stat(s.SocketDir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket directory has mode %v, %v", info.Mode(), err)
	}
}

func TestASecondStartOnTheDirectoryIsRefusedAndNamesTheFirst(t *testing.T) {
	t.Parallel()
	dir := copyBegun(t)
	s := start(t, dir)
	_, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Ephemeral: true})
	if !errors.Is(err, embedded.ErrRunning) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("second start: %v", err)
	}
	if err := embedded.Remove(t.Context(), dir); !errors.Is(err, embedded.ErrRunning) {
		t.Errorf("removing what runs: %v", err)
	}
	run(t, s.DSN(embedded.Database), `SELECT 1`)
}

func TestAnotherProcessFindsTheClusterThatRuns(t *testing.T) {
	t.Parallel()
	dir := copyBegun(t)
	if _, err := embedded.Running(dir, embedded.Database); !errors.Is(err, embedded.ErrNotRunning) {
		t.Errorf("before the start: %v", err)
	}
	p := startProgram(t, dir)
	dsn, err := embedded.Running(dir, embedded.Database)
	if err != nil {
		t.Fatal(err)
	}
	run(t, dsn, `SELECT 1`)
	p.kill(t)
	if _, err := embedded.Running(dir, embedded.Database); !errors.Is(err, embedded.ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
	if err := embedded.Remove(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Remove: %v", err)
	}
}

func TestAfterAKillOfTheProgramTheNextStartHasTheData(t *testing.T) {
	t.Parallel()
	dir := copyBegun(t)
	p := startProgram(t, dir)
	dsn, err := embedded.Running(dir, embedded.Database)
	if err != nil {
		t.Fatal(err)
	}
	run(t, dsn, createKept)
	p.kill(t)
	s := start(t, dir)
	run(t, s.DSN(embedded.Database), `DROP TABLE kept`)
}

func TestAfterAKillOfProgramAndPostmasterTheNextStartHasTheData(t *testing.T) {
	t.Parallel()
	dir := copyBegun(t)
	p := startProgram(t, dir)
	dsn, err := embedded.Running(dir, embedded.Database)
	if err != nil {
		t.Fatal(err)
	}
	run(t, dsn, createKept)
	busy, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = busy.Exec(context.WithoutCancel(t.Context()), `SELECT pg_sleep(600)`)
		_ = busy.Close(context.WithoutCancel(t.Context()))
	}()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil { // so that it cannot ask for a shutdown
		t.Fatal(err)
	}
	if err := syscall.Kill(p.postgres, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.kill(t)
	s := start(t, dir)
	<-ended // the backend that outlived its postmaster was ended before the start
	run(t, s.DSN(embedded.Database), `DROP TABLE kept`)
}

func TestAfterAKillOfThePostmasterErrSaysSoAndTheNextStartHasTheData(t *testing.T) {
	t.Parallel()
	dir := copyBegun(t)
	s := start(t, dir)
	run(t, s.DSN(embedded.Database), createKept)
	if err := s.Err(); err != nil {
		t.Errorf("while it runs, Err is %v", err)
	}
	if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "postgres.log") {
		t.Errorf("Err is %v", err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir)
	run(t, s.DSN(embedded.Database), `DROP TABLE kept`)
}

func TestAProcessIDThatIsAnothersByNowDoesNotStopTheStart(t *testing.T) {
	t.Parallel()
	other := start(t, copyBegun(t))
	dir := copyBegun(t)
	p := startProgram(t, dir)
	if err := syscall.Kill(p.postgres, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // the program ends with PostgreSQL
	name := filepath.Join(dir, "pgdata", "postmaster.pid")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	awaitDetached(t, string(text))
	if err := os.WriteFile(name, []byte(fmt.Sprint(postmaster(t, other.Dir), "\n", rest)), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	run(t, other.DSN(embedded.Database), `SELECT 1`)
}

// awaitDetached waits until no process of a killed postmaster has its shared memory, whose id is in the seventh line of
// its pid file: those end by themselves, but not at once.
func awaitDetached(t *testing.T, pidFile string) {
	t.Helper()
	id := strings.Fields(strings.Split(pidFile, "\n")[6])[1]
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		segments, err := os.ReadFile("/proc/sysvipc/shm")
		if err != nil {
			return // another system
		}
		isAttached := func(line string) bool {
			fields := strings.Fields(line) // key, id, permissions, size, two processes, how many are attached
			return len(fields) > 6 && fields[1] == id && fields[6] != "0"
		}
		if !slices.ContainsFunc(strings.Split(string(segments), "\n"), isAttached) {
			return
		}
	}
	t.Fatal("processes of the killed postmaster do not end")
}

func TestRootRunsAClusterBelowADirectoryThatOnlyRootMayPass(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root has its PostgreSQL run as another user")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "data")
	s := start(t, dir)
	run(t, s.DSN(embedded.Database), `CREATE TABLE kept AS SELECT generate_series(1, 200000) AS n`)
	run(t, s.DSN(embedded.Database), `CREATE INDEX ON kept (n)`)
	run(t, s.DSN("postgres"), `CREATE DATABASE copy TEMPLATE varve STRATEGY file_copy`)
	for range 3 {
		run(t, s.DSN("postgres"), `SELECT pg_switch_wal()`)
		run(t, s.DSN("postgres"), `CHECKPOINT`)
	}
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir)
	run(t, s.DSN("copy"), `DROP TABLE kept`)
	mustStop(t, s)
}

func TestDataOfAnotherMajorVersionIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	dir := copyBegun(t)
	mustStop(t, start(t, dir))
	name := filepath.Join(dir, "pgdata", "PG_VERSION")
	if err := os.WriteFile(name, []byte("12\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Ephemeral: true})
	if err == nil || !strings.Contains(err.Error(), "written by PostgreSQL 12") || !strings.Contains(err.Error(), "Nothing was changed") {
		t.Errorf("start: %v", err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "12\n" {
		t.Errorf("PG_VERSION is %q, %v", text, err)
	}
}

func TestAnInterruptedInitdbIsHarmless(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	half := filepath.Join(dir, "pgdata.tmp", "base")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := embedded.Start(ctx, embedded.Config{Dir: dir, Ephemeral: true}); err == nil {
		t.Fatal("a cluster was made in 50 ms")
	}
	start(t, dir)
	if _, err := os.Stat(filepath.Dir(half)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("pgdata.tmp: %v", err)
	}
}

func TestAWrongDirectoryOfBinariesIsNamed(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+t.TempDir(), "VARVE_PG_BIN=/nowhere/bin")
	out, err := cmd.Output()
	if err == nil || !strings.Contains(string(out), "VARVE_PG_BIN=/nowhere/bin") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAWrongSettingIsReportedWithPostgreSQLsOwnWords(t *testing.T) {
	t.Parallel()
	dir := copyBegun(t)
	mustStop(t, start(t, dir))
	file, err := os.OpenFile(filepath.Join(dir, "pgdata", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString("no_such_setting = 1\n")
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Start(t.Context(), embedded.Config{Dir: dir, Ephemeral: true})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("start: %v", err)
	}
}
