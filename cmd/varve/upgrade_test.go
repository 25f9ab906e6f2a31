package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/session"
)

// oldSchema is a database that a release of schema 29 has written (internal/process).
const oldSchema = "../../internal/process/testdata/schema29.sql.gz"

// oldData makes the data directory of a varve up of that time, and returns its key.
func oldData(t *testing.T, dir string) (key string) {
	t.Helper()
	cluster, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	dsn := cluster.DSN(embedded.Database)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	execute := func(sql string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	execute(unzipped(t, oldSchema))
	execute(`SET search_path = public`)
	var tenant uuid.UUID
	if err := conn.QueryRow(t.Context(), `SELECT id FROM tenants WHERE name = 'default'`).Scan(&tenant); err != nil {
		t.Fatal(err)
	}
	key = session.NewAPIKey(tenant)
	digest := sha256.Sum256([]byte(key))
	_, err = conn.Exec(t.Context(), `INSERT INTO api_keys (tenant_id, id, name, digest, last4) VALUES ($1, gen_random_uuid(), 'old', $2, 'abcd')`, tenant, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	execute(`ALTER DATABASE ` + embedded.Database + ` OWNER TO ` + embedded.User)
	ctx := context.WithoutCancel(t.Context())
	if err := conn.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return key
}

func unzipped(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestADataDirectoryFromBeforeThereWereLoginsIsTakenOver(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	key := oldData(t, data)
	u := startUp(t, data, "--keep-whole") // what is packed is not repaired: old columns are repaired here first
	if u.key != key {
		t.Error("it made another key")
	}
	if view := u.want(200, "GET", "/v1/sessions/openai-chat/context", ``); len(view["messages"].([]any)) == 0 {
		t.Errorf("view %v", view)
	}
	u.want(201, "POST", "/v1/sessions/openai-chat/messages", `{"format":"openai-chat","messages":[{"role":"user","content":"go on"}]}`)
	u.want(200, "POST", "/v1/sessions/openai-chat/compact?wait=60", ``)
	conn := superuser(t, data)
	rows, err := conn.Query(t.Context(), `
		SELECT DISTINCT usename::text
		  FROM pg_stat_activity
		 WHERE datname = current_database() AND pid <> pg_backend_pid()
		 ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	logins, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !slices.Equal(logins, []string{adminLogin, apiLogin, workerLogin}) {
		t.Errorf("logged in are %v, %v: want the operators', the API's and the worker's login", logins, err)
	}
	var superusers int // what a superuser owns
	err = conn.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relowner = $1::regrole)
		       + (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner = $1::regrole)
		       + (SELECT count(*) FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typowner = $1::regrole)
		       + (SELECT count(*) FROM pg_roles WHERE rolname = $2 AND (rolsuper OR rolbypassrls))`,
		embedded.User, embedded.Owner).Scan(&superusers)
	if err != nil || superusers > 0 {
		t.Errorf("a superuser owns %d objects of the schema, %v", superusers, err)
	}
	for _, args := range [][]string{{"tenants", "list"}, {"keys", "list"}, {"failures"}, {"verify", "--repair"}, {"verify"}} {
		if out, code := u.exits(args...); code != 0 {
			t.Errorf("%v: exit code %d\n%s", args, code, out)
		}
	}
	u.stop()
}
