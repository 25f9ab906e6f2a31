// Package pgtest gives every test an empty database with Varve's schema, on a real PostgreSQL.
//
// Start at NewWarm, or at New if a test cares for more than rows, and have the package's TestMain call Main. Both
// return the superuser's URL, for what a test looks at and sets up itself. Owner makes of it that of the login that has
// migrated, and API, Worker, Admin and Backup those of logins that serve: they are the logins of docs/operations.md,
// and a test uses the one that its process would.
//
// The cluster is started by the first test that asks, one for the process, without durability and in memory if there is
// room (TMPDIR says otherwise); TEST_DATABASE_URL names a server to use instead. Without PostgreSQL's programs tests
// fail and say what to install.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/postgres"
)

const (
	dirPrefix    = "varve-pgtest-"
	startTimeout = 10 * time.Minute
	stopTimeout  = time.Minute
)

// cluster is the server that the tests of this process share.
type cluster struct {
	server *embedded.Server // nil if TEST_DATABASE_URL names the server
	dir    string
	admin  *pgxpool.Pool
	url    *url.URL // of the database that admin is connected to
	prefix string   // of the names of our databases
	count  atomic.Int64

	mu     sync.Mutex
	filled map[string]bool // the databases of NewFrom, without their prefix
	warm   []*warm         // that no test has now
	lent   map[string]*warm
}

var (
	started atomic.Pointer[cluster]
	shared  = sync.OnceValues(startShared)
)

// New returns the superuser's URL of an empty, migrated database of the test's own. The database is dropped when the
// test ends.
func New(t testing.TB) string {
	t.Helper()
	c := get(t)
	return c.create(t, copyOf(c.template()))
}

// NewFrom does what New does, but the database begins as a copy of one that fill has filled, once for each name in a
// process. fill closes its connections.
func NewFrom(t testing.TB, name string, fill func(dsn string)) string {
	t.Helper()
	c := get(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.filled[name] {
		if err := c.copy(t.Context(), c.prefix+name, c.template()); err != nil {
			t.Fatal(err)
		}
		fill(c.dsn(c.prefix + name))
		c.filled[name] = true
	}
	return c.create(t, copyOf(c.prefix+name))
}

// copyOf returns the options of a database that is a copy of another.
func copyOf(name string) string {
	return `OWNER ` + ownerLogin + ` TEMPLATE ` + name + ` STRATEGY file_copy`
}

func (c *cluster) copy(ctx context.Context, name, of string) error {
	_, err := c.admin.Exec(ctx, `CREATE DATABASE `+name+` `+copyOf(of))
	return err
}

// NewEmpty returns the URL of a database without any schema, for tests of the migrations. options are those of CREATE
// DATABASE besides.
func NewEmpty(t testing.TB, options ...string) string {
	t.Helper()
	return get(t).create(t, `OWNER `+ownerLogin+` TEMPLATE template0 `+strings.Join(options, " "))
}

// The logins of the tests, and their password on a server that asks for one.
const (
	ownerLogin  = "varve_test_owner"
	apiLogin    = "varve_test_api"
	workerLogin = "varve_test_worker"
	adminLogin  = "varve_test_admin"
	backupLogin = "varve_test_backup"
	password    = "varve_test"
)

// API returns the URL of the same database for a login that has the rights of an API and no more.
func API(dsn string) string { return login(dsn, apiLogin) }

// Worker returns the URL of the same database for a login that has the rights of a worker and no more.
func Worker(dsn string) string { return login(dsn, workerLogin) }

// Admin returns the URL of the same database for a login that may do what API, worker and the operator's commands do,
// and that row-level security binds like theirs: for tests that do all of that with one pool.
func Admin(dsn string) string { return login(dsn, adminLogin) }

// Backup returns the URL of the same database for a login that reads everything and writes nothing.
func Backup(dsn string) string { return login(dsn, backupLogin) }

// Owner returns the URL of the same database for the login that owns the schema and migrates. It is no superuser, and
// row-level security binds it where a table forces that.
func Owner(dsn string) string { return login(dsn, ownerLogin) }

// Superuser returns the URL that New returned, from one of its database's other URLs.
func Superuser(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return get(t).dsn(strings.TrimPrefix(u.Path, "/"))
}

func login(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(err) // it is one of New's
	}
	u.User = nil
	query := u.Query()
	query.Set("user", name)
	if !query.Has("passfile") {
		query.Set("password", password)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// makeOwner makes the login that migrates, unless the server has it; dsn is a superuser's.
func makeOwner(ctx context.Context, dsn string) error {
	return execute(ctx, dsn, `
		DO $$ BEGIN
			CREATE ROLE `+ownerLogin+` LOGIN CREATEROLE PASSWORD '`+password+`';
		EXCEPTION WHEN duplicate_object OR unique_violation THEN -- another process was faster
		END $$`)
}

// MakeLogins makes the logins of the tests that serve; dsn is the superuser's of a migrated database.
func MakeLogins(ctx context.Context, dsn string) error {
	grants := []postgres.Grant{
		{Login: apiLogin, Role: postgres.AppRole, Make: true},
		{Login: workerLogin, Role: postgres.WorkerRole, Make: true},
		{Login: adminLogin, Role: postgres.AdminRole, Make: true},
		{Login: backupLogin, Role: postgres.BackupRole, Make: true},
	}
	if err := postgres.GrantTo(ctx, dsn, grants...); err != nil {
		return err
	}
	for _, g := range grants {
		// Not again by each process: two at once would get in each other's way.
		err := execute(ctx, dsn, `
			DO $$ BEGIN
				IF (SELECT rolpassword IS NULL FROM pg_authid WHERE rolname = '`+g.Login+`') THEN
					ALTER ROLE `+g.Login+` PASSWORD '`+password+`';
				END IF;
			END $$`)
		if err != nil {
			return err
		}
	}
	return nil
}

func execute(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

// Server returns the cluster that the tests of this process share. It fails the test if TEST_DATABASE_URL names
// another.
func Server(t testing.TB) *embedded.Server {
	t.Helper()
	c := get(t)
	if c.server == nil {
		t.Fatal("this test needs the cluster that pgtest starts: unset TEST_DATABASE_URL")
	}
	return c.server
}

// NewDurable returns a durable cluster of the test's own, with Varve's schema in the database named by
// embedded.Database, which the test may crash. Restart starts it again.
func NewDurable(t testing.TB) *embedded.Server {
	t.Helper()
	s := startDurable(t, t.TempDir())
	ctx, dsn := t.Context(), s.DSN(embedded.Database)
	owns := `ALTER DATABASE ` + embedded.Database + ` OWNER TO ` + ownerLogin
	err := errors.Join(makeOwner(ctx, dsn), execute(ctx, dsn, owns), postgres.Migrate(ctx, Owner(dsn)),
		MakeLogins(ctx, dsn))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Restart starts a cluster again after its Stop or Crash, on the same directory.
func Restart(t testing.TB, s *embedded.Server) *embedded.Server {
	t.Helper()
	return startDurable(t, s.Dir)
}

func startDurable(t testing.TB, dir string) *embedded.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	s, err := embedded.Start(ctx, embedded.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Crash(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Main runs a package's tests and then removes the cluster: func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }.
func Main(m *testing.M) int {
	code := m.Run()
	if c := started.Load(); c != nil {
		if err := c.close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return max(code, 1)
		}
	}
	return code
}

func get(t testing.TB) *cluster {
	t.Helper()
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func startShared() (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c := &cluster{
		prefix: fmt.Sprintf("varve_test_%d_%d_", os.Getpid(), time.Now().UnixNano()), filled: map[string]bool{},
		lent: map[string]*warm{},
	}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	started.Store(c)
	return c, nil
}

// keptPrefix is that of the names of databases on a server of the process's own.
const keptPrefix = "varve_test_"

func (c *cluster) open(ctx context.Context) error {
	if dsn := os.Getenv("TEST_DATABASE_URL"); dsn != "" {
		if err := c.connect(ctx, dsn); err != nil {
			return err
		}
		return c.makeTemplate(ctx)
	}
	c.prefix = keptPrefix
	copied, err := c.start(ctx)
	if err != nil {
		return err
	}
	if err := c.connect(ctx, c.server.DSN("postgres")); err != nil || copied {
		return err
	}
	return c.makeTemplate(ctx)
}

func (c *cluster) connect(ctx context.Context, dsn string) (err error) {
	if c.url, err = url.Parse(dsn); err != nil || c.url.Scheme == "" {
		return fmt.Errorf("TEST_DATABASE_URL must be a postgres:// URL (%v)", err)
	}
	c.admin, err = pgxpool.New(ctx, dsn)
	return err
}

// makeTemplate makes the database that those of the tests are copied from, and the logins.
func (c *cluster) makeTemplate(ctx context.Context) error {
	if err := makeOwner(ctx, c.url.String()); err != nil {
		return err
	}
	_, err := c.admin.Exec(ctx, `CREATE DATABASE `+c.template()+` OWNER `+ownerLogin+` TEMPLATE template0`)
	if err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, Owner(c.dsn(c.template()))); err != nil {
		return err
	}
	return MakeLogins(ctx, c.dsn(c.template()))
}

// start starts a server of the process's own, with the template if it begins with a copy of the kept one.
func (c *cluster) start(ctx context.Context) (copied bool, err error) {
	sweep(ctx)
	if c.dir, err = os.MkdirTemp(clusterDir(), dirPrefix); err != nil {
		return false, err
	}
	if copied, err = copyKept(ctx, c.dir); err != nil {
		return false, err
	}
	c.server, err = embedded.Start(ctx, embedded.Config{Dir: c.dir, Ephemeral: true})
	return copied, err
}

// Where Linux keeps files in memory, and how much of it must be free for a cluster.
const (
	memoryDir  = "/dev/shm"
	memoryFree = 4 << 30 // bytes
)

// clusterDir returns where shared clusters have their data: in memory, if nobody has said otherwise. Every test has a
// database of its own, and to copy the template to a disk and to remove the copy costs twenty times the processor time.
func clusterDir() string {
	var memory syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memoryDir, &memory) != nil ||
		memory.Bavail*uint64(memory.Bsize) < memoryFree {
		return os.TempDir()
	}
	return memoryDir
}

// sweep removes the clusters of test processes that were killed. Those that live hold their lock, and one whose lock
// file is not there yet is just being started.
func sweep(ctx context.Context) {
	inMemory, _ := filepath.Glob(filepath.Join(memoryDir, dirPrefix+"*")) // the patterns are well formed
	others, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range append(inMemory, others...) {
		_ = embedded.Remove(ctx, dir) // another process may be at it too; what stays is swept next time
	}
}

func (c *cluster) template() string { return c.prefix + "template" }

func (c *cluster) dsn(database string) string {
	u := *c.url
	u.Path = "/" + database
	return u.String()
}

// create creates a database that is dropped when the test ends, and returns its URL.
func (c *cluster) create(t testing.TB, options string) string {
	t.Helper()
	name := fmt.Sprint(c.prefix, c.count.Add(1))
	if _, err := c.admin.Exec(t.Context(), `CREATE DATABASE `+name+` `+options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stopLooking(c.dsn(name))
		if err := c.drop(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
	return c.dsn(name)
}

func (c *cluster) drop(ctx context.Context, name string) error {
	_, err := c.admin.Exec(ctx, `DROP DATABASE IF EXISTS `+pgx.Identifier{name}.Sanitize()+` WITH (FORCE)`)
	return err
}

func (c *cluster) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var err error
	if c.admin != nil {
		for _, w := range c.warm {
			err = errors.Join(err, c.end(ctx, w))
		}
		if c.server == nil {
			err = errors.Join(err, c.drop(ctx, c.template()))
			for name := range c.filled {
				err = errors.Join(err, c.drop(ctx, c.prefix+name))
			}
		}
		c.admin.Close()
	}
	if c.server != nil {
		err = errors.Join(err, c.server.Crash()) // nothing of it is needed
	}
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}
