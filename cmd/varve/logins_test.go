package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/backup"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
)

// commandLine runs a command line in this process.
func commandLine(t *testing.T, args ...string) error {
	t.Helper()
	var cli commands
	parsed, err := parser(&cli).Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	parsed.BindTo(t.Context(), (*context.Context)(nil))
	parsed.BindTo(io.Discard, (*io.Writer)(nil))
	return parsed.Run(&cli.Client)
}

// owned returns the URL of an empty database whose schema a login owns that is no superuser, for a superuser and for the
// owner.
func owned(t *testing.T) (superuser, owner string) {
	t.Helper()
	superuser, name := pgtest.NewEmpty(t), "owner_"+strings.ToLower(rand.Text())
	onServer := func(ctx context.Context, sql string) {
		t.Helper()
		conn, err := pgx.Connect(ctx, superuser)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	onServer(t.Context(), `
		CREATE ROLE `+name+` LOGIN CREATEROLE PASSWORD '`+name+`';
		GRANT ALL ON SCHEMA public TO `+name+`;
		DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO `+name+`', current_database()); END $$;
		DO $$ BEGIN
			IF current_setting('server_version_num')::int >= 160000 THEN -- since 16 only an administrator of a role may grant it
				GRANT varve_app, varve_test_api TO `+name+` WITH ADMIN OPTION;
			END IF;
		END $$`)
	t.Cleanup(func() {
		onServer(context.WithoutCancel(t.Context()), `DROP OWNED BY `+name+` CASCADE; DROP ROLE `+name)
	})
	u, err := url.Parse(superuser)
	if err != nil {
		t.Fatal(err)
	}
	settings := u.Query()
	settings.Set("user", name)
	settings.Set("password", name)
	u.User, u.RawQuery = nil, settings.Encode()
	return superuser, u.String()
}

// TestEveryCommandOfTheDatabaseWorksWithItsLoginAndSaysSoToOthers: what is not there and what is there already are
// answers of a command that works.
func TestEveryCommandOfTheDatabaseWorksWithItsLoginAndSaysSoToOthers(t *testing.T) {
	t.Parallel()
	pgtest.New(t) // which makes the logins
	schemas := []string{"own", "public"}
	if testing.Short() {
		schemas = schemas[:1] // the other tests have the other
	}
	for _, schema := range schemas {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			everyCommand(t, schema)
		})
	}
}

func everyCommand(t *testing.T, schema string) {
	superuser, owner := owned(t)
	in := func(dsn string, args ...string) error {
		t.Helper()
		return commandLine(t, append(args, "--database-url", dsn, "--schema", schema)...)
	}
	if err := errors.Join(in(owner, "migrate"), in(owner, "tenants", "create", "default")); err != nil {
		t.Fatal(err)
	}
	logins := map[string]string{
		"api": pgtest.API(superuser), "worker": pgtest.Worker(superuser), "admin": pgtest.Admin(superuser),
		"backup": pgtest.Backup(superuser), "owner": owner,
	}
	file := filepath.Join(t.TempDir(), "whole.zip")
	if err := in(logins["backup"], "backup", file); err != nil {
		t.Fatal(err)
	}
	operators := []string{"admin", "owner"}
	for _, c := range []struct {
		line string
		of   []string // the logins that it works with
		want string   // what it says to the others
	}{
		{"tenants create LOGIN", operators, ":admin"},
		{"tenants list", operators, ":admin"},
		{"tenants limits default", operators, ":admin"},
		{`tenants limits default --set {"sessions":100}`, operators, ":admin"},
		{"keys create", operators, ":admin"},
		{"keys list", operators, ":admin"},
		{"keys revoke 00000000-0000-0000-0000-000000000001", operators, ":admin"},
		{"failures", operators, ":admin"},
		{"failures retry s", operators, ":admin"},
		{"verify", operators, ":admin"},
		{"verify --repair", operators, ":admin"},
		{"verify --last", operators, ":admin"},
		{"results stat", operators, ":admin"},
		{"results move --to postgres", operators, ":admin"},
		{"backup DIR/LOGIN.zip", []string{"backup"}, ":backup"},
		{"restore " + file, []string{"owner"}, "owns the schema: use that one (VARVE_OWNER_URL)"},
		{"migrate", []string{"owner"}, "owns the schema: use that one (VARVE_OWNER_URL)"},
		{"migrate --grant-to varve_test_api", []string{"owner"}, "owns the schema: use that one (VARVE_OWNER_URL)"},
	} {
		for login, dsn := range logins {
			line := strings.NewReplacer("LOGIN", login, "DIR", filepath.Dir(file)).Replace(c.line)
			err := in(dsn, strings.Fields(line)...)
			if slices.Contains(c.of, login) {
				if err != nil && !errors.Is(err, session.ErrNotFound) && !errors.Is(err, backup.ErrNotEmpty) {
					t.Errorf("%s as %s: %v", line, login, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "login") {
				t.Errorf("%s as %s: %v, want it to say %q", line, login, err, c.want)
			}
		}
	}
	if n := inPublic(t, superuser); n > 0 != (schema == "public") {
		t.Errorf("in the schema public are %d tables, functions and types", n)
	}
}

// inPublic counts what is in the schema public.
func inPublic(t *testing.T, dsn string) (n int) {
	t.Helper()
	err := pgtest.Row(t, dsn, `
		SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)
		       + (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)
		       + (SELECT count(*) FROM pg_type WHERE typnamespace = 'public'::regnamespace)`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNoProcessSaysAPassword starts every process with URLs of a database that are broken or lead nowhere.
func TestNoProcessSaysAPassword(t *testing.T) {
	t.Parallel()
	const secret = "hush-4711"
	urls := []string{
		"postgres://u:" + secret + "@127.0.0.1:1/d", "postgres://u:" + secret + "@127.0.0.1:1/d\n",
		"host=127.0.0.1 port=1 user=u dbname=d password=" + secret, "host=127.0.0.1 port=1 pasword=" + secret,
		"postgres://u:" + secret + "@host.invalid/d", "postgres://u:a@" + secret + "@127.0.0.1:1/d", "postgres://u:" + secret + "/x@h/d",
		"postgres://u:" + secret + "#x@h/d", "postgres://u:%" + secret + "@h/d", "postgres://u:" + secret + "@[::1/d",
		"postgres://u:" + secret + "@h:port/d", "postgres://u:" + secret + "@h/d?sslmode=none", "postgresql:/u:" + secret + "@h/d",
		"host=h password='" + secret, "host=h password=a " + secret, secret,
	}
	lines := []string{"api", "worker", "up", "config", "migrate", "tenants list", "keys list", "failures", "verify", "results stat", "doctor",
		"backup DIR/b.zip", "restore DIR/b.zip", "audit verify --operator"}
	whole, each := 4, 4 // the first URLs with all lines, the others with every fourth
	if testing.Short() {
		whole, each = 1, 9 // which comes by every line and every URL
	}
	slots := make(chan struct{}, 4)
	var group sync.WaitGroup
	for i, url := range urls {
		for j, line := range lines {
			if i >= whole && (i+j)%each > 0 && line != "api" {
				continue // what is wrong with the form is said in one place: some of each
			}
			group.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // a process waits for its database
				defer cancel()
				dir := t.TempDir()
				args := append(strings.Fields(strings.ReplaceAll(line, "DIR", dir)), "--data", dir)
				if line == "up" {
					args = append(args, "--addr", "127.0.0.1:0")
				}
				cmd := program(ctx, args...)
				cmd.Env = append(cmd.Env, "DATABASE_URL="+url, "VARVE_OWNER_URL="+url, "VARVE_ADMIN_DATABASE_URL="+url, "VARVE_ADDR=127.0.0.1:0")
				said, err := cmd.CombinedOutput()
				if strings.Contains(string(said), secret) || err == nil && line != "config" {
					t.Errorf("%s with %q: %v\n%s", line, url, err, said)
				}
			})
		}
	}
	group.Wait()
}
