package process_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/backup"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

// condition is a way in which a database, or a login, is not as it is made.
type condition struct {
	name string
	sql  string // {login} and {database} stand for the names
	want string // of each process in its order, a letter: see outcomes
	says string // in the error of who refuses
}

// outcomes are the letters of a condition: what it may come to. That a process is ready and then fails is not among
// them.
var outcomes = map[byte]string{'w': "works", 'r': "refuses", 's': "waits", 'o': "only reads"}

const forLogin = `ALTER ROLE {login} IN DATABASE {database} SET `

// conditions have a letter for migrate, the API, the worker, a command and backup.
var conditions = []condition{
	{"as it is made", ``, "wwwww", ""},
	{"another time zone", forLogin + `timezone = 'Asia/Kathmandu'`, "wwwww", ""},
	{"other formats", `
		ALTER ROLE {login} IN DATABASE {database} SET datestyle = 'SQL, DMY';
		ALTER ROLE {login} IN DATABASE {database} SET intervalstyle = 'sql_standard';
		ALTER ROLE {login} IN DATABASE {database} SET bytea_output = 'escape';
		ALTER ROLE {login} IN DATABASE {database} SET array_nulls = off;
		ALTER ROLE {login} IN DATABASE {database} SET transform_null_equals = on;
		ALTER ROLE {login} IN DATABASE {database} SET quote_all_identifiers = on;
		ALTER ROLE {login} IN DATABASE {database} SET extra_float_digits = -15`, "wwwww", ""},
	{"an extension in public", `CREATE EXTENSION pg_trgm`, "wwwww", ""},
	{"a schema of its own, beside others' tables", `
		CREATE TABLE public.tenants (); CREATE TABLE public.sessions (); CREATE TABLE public.river_job ();
		CREATE TABLE public.schema_migrations (version text); CREATE TYPE public.river_job_state AS ENUM ('theirs');
		CREATE FUNCTION public.audit_hash(x anyelement) RETURNS text LANGUAGE sql AS 'SELECT (1 / 0)::text'`, "wwwww", ""},
	{"SQL_ASCII", `UPDATE pg_database SET encoding = 0 WHERE datname = '{database}'`, "rrrrr", "ENCODING 'UTF8'"},
	{"LATIN1", `UPDATE pg_database SET encoding = 8 WHERE datname = '{database}'`, "rrrrr", "its encoding is LATIN1"},
	{"clients' texts in LATIN1", forLogin + `client_encoding = LATIN1`, "rrrrr", "client_encoding"},
	{"escapes in strings", forLogin + `standard_conforming_strings = off`, "rrrrr", "standard_conforming_strings"},
	{"serializable", forLogin + `default_transaction_isolation = serializable`, "wrrww", "default_transaction_isolation"},
	{"repeatable read", forLogin + `default_transaction_isolation = 'repeatable read'`, "wrrww", "default_transaction_isolation"},
	{"row security off", forLogin + `row_security = off`, "rrrrr", "row_security"},
	{"a replica's session", forLogin + `session_replication_role = replica`, "rrrrr", "session_replication_role"},
	{"another schema", `CREATE SCHEMA theirs; GRANT ALL ON SCHEMA theirs TO PUBLIC; ` + forLogin + `search_path = theirs, public`, "rrrrr", "search_path"},
	{"a short statement_timeout", forLogin + `statement_timeout = '1s'`, "wrrww", "statement_timeout is 1000 ms"},
	{"no statement_timeout", forLogin + `statement_timeout = 0`, "wrrww", "statement_timeout is 0 ms"},
	{"no lock_timeout", forLogin + `lock_timeout = 0`, "wrrww", "lock_timeout is 0 ms"},
	{"transactions idle for long", forLogin + `idle_in_transaction_session_timeout = 0`, "wrrww", "idle_in_transaction_session_timeout"},
	{"idle sessions end", forLogin + `idle_session_timeout = '500ms'`, "wrrww", "idle_session_timeout is 500 ms, which must be 0"},
	{"a limit of transactions", forLogin + `transaction_timeout = '1s'`, "wrrww", "transaction_timeout is 1000 ms"},
	{"plans of each call", forLogin + `plan_cache_mode = auto`, "wrrww", "plan_cache_mode"},
	{"read-only", forLogin + `default_transaction_read_only = on`, "rosrw", "takes no writes"},
	{"a table without rights", `REVOKE SELECT ON runs FROM varve_app`, "wrrrw", "GRANT SELECT ON TABLE runs TO varve_app"},
	{"a column without rights", `REVOKE UPDATE (superseded_by) ON messages FROM varve_app`, "wrrrw", "GRANT UPDATE (superseded_by) ON TABLE messages TO varve_app"},
	{"a function without rights", `REVOKE EXECUTE ON FUNCTION metadata_pairs FROM varve_app`, "wrrrw", "GRANT EXECUTE ON FUNCTION metadata_pairs(jsonb) TO varve_app"},
	{"few connections", `ALTER DATABASE {database} CONNECTION LIMIT 5`, "wrrww", "a process needs 8"},
	{"another version of the collation", `UPDATE pg_database SET datcollversion = '0' WHERE datname = '{database}'`, "rrrrr", "REINDEX DATABASE"},
}

// probe is a process with what it does once it is ready.
type probe struct {
	name  string
	login func(dsn string) string
	run   func(t *testing.T, w *place) (outcome byte, err error)
}

var probes = []probe{
	{"migrate", pgtest.Owner, probeMigrate},
	{"api", pgtest.API, probeAPI},
	{"worker", pgtest.Worker, probeWorker},
	{"command", pgtest.Admin, probeCommand},
	{"backup", pgtest.Backup, probeBackup},
}

// place is a database of one condition, and how a process logs in to it.
type place struct {
	dsn, login string
	key        string
	due        session.Address // a session that has reached its trigger
}

// TestADatabaseIsCheckedBeforeReady starts every process under every condition, with -short one process under each.
// What it refuses, it says how to mend, and that is tried.
func TestADatabaseIsCheckedBeforeReady(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	rows := map[string]string{}
	t.Run("conditions", func(t *testing.T) {
		for n, c := range conditions {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.skipWhereItCannotBe(t)
				row := c.name
				for i, p := range probes {
					if testing.Short() && i != n%len(probes) { // a process costs a second, make soak starts all
						row += "\t"
						continue
					}
					row += "\t" + outcomes[c.try(t, p, c.want[i])]
				}
				mu.Lock()
				defer mu.Unlock()
				rows[c.name] = row
			})
		}
	})
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "condition")
	for _, p := range probes {
		fmt.Fprint(table, "\t", p.name)
	}
	for _, c := range conditions {
		fmt.Fprint(table, "\n", cmp.Or(rows[c.name], c.name+"\tnot in this PostgreSQL"))
	}
	fmt.Fprintln(table)
	table.Flush()
}

// skipWhereItCannotBe skips what this PostgreSQL does not have.
func (c condition) skipWhereItCannotBe(t *testing.T) {
	t.Helper()
	var has bool
	err := connect(t, pgtest.New(t)).QueryRow(t.Context(), `
		SELECT ($1 NOT LIKE '%transaction_timeout%' OR current_setting('server_version_num')::int >= 170000)
		   AND ($1 NOT LIKE '%EXTENSION%' OR EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_trgm'))`,
		strings.ReplaceAll(c.sql, "idle_in_transaction", "")).Scan(&has)
	if err != nil {
		t.Fatal(err)
	}
	if !has {
		t.Skip("this PostgreSQL does not have it")
	}
}

// remedies finds the statements of an error.
var remedies = regexp.MustCompile(`(?m)^    (.*;)$`)

func (c condition) try(t *testing.T, p probe, want byte) byte {
	t.Helper()
	at := newPlace(t, c, p)
	got, err := p.run(t, at)
	if got != want || want == 'r' && !strings.Contains(err.Error(), c.says) {
		t.Errorf("%s: it %s, want that it %s, saying %q: %v", p.name, outcomes[got], outcomes[want], c.says, err)
	}
	found := remedies.FindAllStringSubmatch(fmt.Sprint(err), -1)
	if got != 'r' || errors.Is(err, postgres.ErrReadOnly) || strings.Contains(fmt.Sprint(err), "CREATE DATABASE") {
		return got
	}
	for _, remedy := range found {
		for sql := range strings.SplitSeq(strings.TrimSuffix(remedy[1], ";"), "; ") {
			at.execute(t, sql)
		}
	}
	if again, err := p.run(t, at); again != 'w' || len(found) == 0 {
		t.Errorf("%s: after the remedies %q it %s: %v", p.name, found, outcomes[again], err)
	}
	return got
}

// newPlace makes a database with a tenant and a session that is due, and what a condition is for a process.
func newPlace(t *testing.T, c condition, p probe) *place {
	t.Helper()
	made := pgtest.New(t)
	dsn := made
	if strings.Contains(c.name, "collation") {
		dsn = pgtest.NewEmpty(t, `LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C.UTF-8'`)
	}
	if strings.Contains(c.name, "of its own") {
		dsn = config.Database{Schema: "own"}.In(pgtest.NewEmpty(t))
	}
	if dsn != made {
		if err := postgres.Migrate(t.Context(), pgtest.Owner(dsn)); err != nil {
			t.Fatal(err)
		}
	}
	at := &place{dsn: dsn, login: p.login(dsn)}
	db := config.Database{URL: pgtest.Admin(dsn), Connections: 2}
	at.key = makeKey(t, db, func(t *testing.T, store *postgres.Store) uuid.UUID {
		tenant := newTenant(t, store)
		window := 1000
		at.due = session.Address{Tenant: tenant, ID: "due"}
		if _, _, err := store.Create(t.Context(), at.due, session.Change{WindowTokens: &window}, nil); err != nil {
			t.Fatal(err)
		}
		body := fmt.Appendf(nil, `{"role":"user","content":%q}`, strings.Repeat("word ", 2000))
		message := session.NewMessage{Body: body, Role: "user", Tokens: 2000, StartsUnit: true}
		batch := session.Append{Session: at.due, Format: session.OpenAIChat, Messages: []session.NewMessage{message}}
		if _, _, err := store.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		return tenant
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	login, err := pgx.ParseConfig(at.login)
	if err != nil {
		t.Fatal(err)
	}
	sql := strings.NewReplacer("{login}", login.User, "{database}", strings.TrimPrefix(u.Path, "/")).Replace(c.sql)
	at.execute(t, sql)
	return at
}

// execute runs statements as a superuser, on a connection that is not there any more when a process counts its own.
func (at *place) execute(t *testing.T, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at.dsn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err = errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func probeMigrate(t *testing.T, at *place) (byte, error) {
	if err := postgres.Migrate(t.Context(), at.login); err != nil {
		return 'r', err
	}
	return 'w', nil
}

func probeCommand(t *testing.T, at *place) (byte, error) {
	store, err := process.OpenStore(t.Context(), config.Database{URL: at.login, Connections: 2})
	if err != nil {
		return 'r', err
	}
	defer store.Close()
	if _, err = store.CreateTenant(t.Context(), uuid.NewString(), policy.StoredDefault()); postgres.IsReadOnly(err) {
		return 'r', errors.Join(postgres.ErrReadOnly, err)
	}
	return ready(err)
}

func probeBackup(t *testing.T, at *place) (byte, error) {
	if _, err := backup.Write(t.Context(), at.login, filepath.Join(t.TempDir(), "b.zip"), "test"); err != nil {
		return 'r', err
	}
	return 'w', nil
}

// ready returns the outcome of what a process does that is ready.
func ready(err error) (byte, error) {
	if err != nil {
		return 0, err
	}
	return 'w', nil
}

const patience = 5 * time.Minute

func probeAPI(t *testing.T, at *place) (byte, error) {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	started, ended := make(chan string, 1), make(chan error, 1)
	db := config.Database{URL: at.login, Connections: 6}
	go func() {
		log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
		ended <- process.API(ctx, config.API{Addr: "127.0.0.1:0"}, config.LLM{}, db, log,
			func(a net.Addr) { started <- "http://" + a.String() })
	}()
	s := &service{T: t, key: at.key}
	select {
	case s.url = <-started:
	case err := <-ended:
		return 'r', err
	}
	defer func() { stop(); <-ended }()
	if status, answer := s.call("GET", "/v1/sessions/due/context", ""); status != 200 {
		return 0, fmt.Errorf("a read: %d %s", status, answer)
	}
	status, answer := s.call("GET", "/readyz", "")
	if status == 503 && strings.Contains(answer, "takes no writes") {
		return 'o', nil
	}
	const message = `{"format":"openai-chat","messages":[{"role":"user","content":"Grüße, 你好"}]}`
	for _, of := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/readyz", "", 200}, {"PUT", "/v1/sessions/s", `{"window_tokens":10000}`, 201},
		{"POST", "/v1/sessions/s/messages", message, 201}, {"GET", "/v1/sessions/s/messages", "", 200},
		{"GET", "/v1/sessions", "", 200}, {"GET", "/v1/usage", "", 200}, {"GET", "/v1/audit", "", 200},
		{"DELETE", "/v1/sessions/s", "", 204},
	} {
		if of.path == "/v1/sessions" { // an idle connection is still one
			time.Sleep(time.Second)
		}
		status, answer := s.call(of.method, of.path, of.body)
		if status/100 != of.status/100 || of.path == "/v1/sessions/s/messages" && of.method == "GET" && !strings.Contains(answer, "Grüße, 你好") {
			return 0, fmt.Errorf("%s %s: %d %s", of.method, of.path, status, answer)
		}
	}
	return 'w', nil
}

func probeWorker(t *testing.T, at *place) (byte, error) {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	started, ended := make(chan bool, 1), make(chan error, 1)
	log := &lines{t: t}
	worker := config.Worker{Compactions: 2, JobTimeout: time.Second, SweepInterval: time.Second, StopTimeout: time.Second}
	db := config.Database{URL: at.login, Connections: 6}
	go func() {
		ended <- process.Worker(ctx, worker, config.LLM{}, db, slog.New(slog.NewTextHandler(log, nil)), func() { started <- true })
	}()
	for waits := false; ; {
		select {
		case <-started:
			defer func() { stop(); <-ended }()
			return ready(compacted(ctx, at))
		case err := <-ended:
			if waits && ctx.Err() != nil {
				return 's', nil
			}
			return 'r', err
		case <-time.After(50 * time.Millisecond):
			if waits = log.count("waiting for it") > 0; waits {
				stop()
			}
		}
	}
}

// compacted waits until the session that is due has a checkpoint.
func compacted(ctx context.Context, at *place) error {
	conn, err := pgx.Connect(ctx, at.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for done := false; !done; time.Sleep(20 * time.Millisecond) {
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM runs WHERE state IN ('done', 'unchanged'))`).Scan(&done)
		if err != nil {
			return err
		}
	}
	return nil
}
