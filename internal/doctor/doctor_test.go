package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// has reports whether there is a finding of that subject and level whose text or todo contains a text.
func has(found []Finding, subject string, level Level, text string) bool {
	return slices.ContainsFunc(found, func(f Finding) bool {
		return f.Subject == subject && f.Level == level && strings.Contains(f.Text+f.Todo, text)
	})
}

// TestEachFaultIsFound makes faults of a database one by one. Without one nothing fails.
func TestEachFaultIsFound(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "varve-database"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	unused := t.TempDir()
	const live = `INSERT INTO workers (id) VALUES ('w');`
	for _, c := range []struct {
		name, sql string
		login     func(dsn string) string
		results   string
		subject   string
		level     Level
		text      string
	}{
		{"none", live, pgtest.Worker, unused, "results", OK, "can be written to: 1"},
		{"none, as an API", live, pgtest.API, "", "login", OK, "serves as an API"},
		{"none, as a backup", live, pgtest.Backup, "", "login", OK, "must not serve"},
		{"none, as the owner", live, pgtest.Owner, "", "compactions", OK, "sessions waiting: 0"},
		{"no worker", ``, pgtest.Worker, "", "workers", Failed, "start varve worker"},
		{"a dead worker", live + `UPDATE workers SET renewed_at = now() - interval '1 minute'`, pgtest.Worker, "", "workers", Failed, "none lives"},
		{"an old job", live + `INSERT INTO river_job (args, kind, max_attempts, queue, created_at, scheduled_at)
			VALUES ('{}', 'unknown', 1, 'unknown', now() - interval '6 minutes', now() - interval '6 minutes')`, pgtest.Worker, "", "queues", Warning, "jobs waiting: 1, the oldest for 6m"},
		{"a job in quarantine", live + `INSERT INTO river_job (args, kind, max_attempts, queue, state, tags)
			VALUES ('{}', 'compact', 1, 'compaction', 'retryable', '{quarantined}')`, pgtest.Worker, "", "compactions", Warning, "failing: 1, in quarantine: 1"},
		{"an old schema", `UPDATE schema_migrations SET version = 29`, pgtest.Worker, "", "schema", Failed, "run varve migrate"},
		{"a right less", live + `REVOKE SELECT ON runs FROM varve_app`, pgtest.API, "", "login", Failed, "GRANT SELECT ON TABLE runs TO varve_app"},
		{"another encoding of clients", `ALTER ROLE varve_test_worker IN DATABASE {database} SET client_encoding = LATIN1`, pgtest.Worker, "", "database", Failed, "client_encoding"},
		{"no writes", live + `ALTER ROLE varve_test_api IN DATABASE {database} SET default_transaction_read_only = on`, pgtest.API, "", "writes", Warning, "takes no writes"},
		{"another's results", live, pgtest.Worker, elsewhere, "results", Failed, "belongs to another database"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.New(t)
			execute(t, dsn, c.sql)
			at := Installation{Database: config.Database{URL: c.login(dsn), Connections: 2}}
			at.Unsealed = c.name != "none, as an API" // which has a secret
			if c.results != "" {
				at.Database.Results.URL = "file://" + c.results
			}
			found := Examine(t.Context(), at)
			if !has(found, c.subject, c.level, c.text) || c.level != Failed && Failures(found) > 0 {
				t.Errorf("%+v", found)
			}
			console := at.Unsealed && has(found, "login", OK, "serves as an API")
			if has(found, "console", Warning, "end with the process") != console {
				t.Errorf("an API without a secret, and no other process, is warned of its console: %+v", found)
			}
		})
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(unused); err != nil || len(left) > 0 {
			t.Errorf("the store has %v, %v", left, err)
		}
	})
}

func execute(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	sql = strings.ReplaceAll(sql, "{database}", conn.Config().Database)
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestServersAreAsked has servers that are away, refuse or answer.
func TestServersAreAsked(t *testing.T) {
	t.Parallel()
	status := func(code int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, r.URL.Path)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	const away = "http://127.0.0.1:1"
	for _, c := range []struct {
		at      Installation
		subject string
		level   Level
		text    string
	}{
		{Installation{Database: config.Database{URL: "postgres://u@127.0.0.1:1/d", Connections: 2}}, "database", Failed, "whether the server runs"},
		{Installation{}, "database", Failed, "name the database"},
		{Installation{API: status(200)}, "api", OK, "is ready"},
		{Installation{API: status(503)}, "api", Failed, "is not ready: /readyz"},
		{Installation{API: away, Named: true}, "api", Failed, "refused"},
		{Installation{API: away, Data: "there"}, "api", Skipped, "no varve up runs on there now"},
		{Installation{}, "api", Skipped, "VARVE_URL"},
		{asking(status(200)), "models", OK, "openai answers"},
		{asking(status(404)), "models", OK, "openai answers"},
		{asking(status(401)), "models", Failed, "address and key"},
		{asking(away), "models", Warning, "refuses the connection"},
		{Installation{}, "models", Skipped, "extracts"},
	} {
		if found := Examine(t.Context(), c.at); !has(found, c.subject, c.level, c.text) {
			t.Errorf("want %s %s %q: %+v", c.subject, c.level, c.text, found)
		}
	}
}

// asking returns an installation with a language model at an address.
func asking(url string) (at Installation) {
	at.Language.OpenAI.BaseURL, at.Language.AllowPrivate = url, true
	return at
}

// TestAnErrorOfAConnectionIsPlain: no tabs, and of a wrong password no refusal of TLS.
func TestAnErrorOfAConnectionIsPlain(t *testing.T) {
	t.Parallel()
	const tls = "\n\t127.0.0.1:5432 (db): tls error: server refused TLS connection"
	for text, want := range map[string]string{
		"cannot connect:" + tls + "\n\t127.0.0.1:5432 (db): wrong password": "cannot connect:\n127.0.0.1:5432 (db): wrong password",
		"cannot connect:" + tls: strings.ReplaceAll("cannot connect:"+tls, "\t", ""),
		"another":               "another",
	} {
		if got := plain(errors.New(text)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBounds holds what is measured to where it begins to matter.
func TestBounds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	until := func(left time.Duration) tls.ConnectionState {
		return tls.ConnectionState{PeerCertificates: []*x509.Certificate{{NotAfter: now.Add(left)}}}
	}
	for i, c := range []struct {
		got  Finding
		want Level
	}{
		{clockFinding(-time.Second), OK}, {clockFinding(-2 * time.Second), Warning}, {clockFinding(time.Hour), Failed},
		{diskFinding("/", 50<<30, 100<<30), OK}, {diskFinding("/", 4<<30, 100<<30), Warning},
		{diskFinding("/", 900<<20, 1<<30), Warning}, {diskFinding("/", 90<<20, 100<<20), Failed},
		{certificate(until(soon+time.Hour), now), OK}, {certificate(until(soon-time.Hour), now), Warning},
	} {
		if c.got.Level != c.want {
			t.Errorf("%d: %+v, want %s", i, c.got, c.want)
		}
	}
}
