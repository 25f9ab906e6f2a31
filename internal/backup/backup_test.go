package backup_test

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/backup"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
	"github.com/varve-dev/varve/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// world is a database with tenants that write.
type world struct {
	testing.TB
	dsn     string
	store   *postgres.Store
	tenants []session.Tenant
}

func open(t testing.TB, dsn string) *postgres.Store {
	t.Helper()
	pool, err := postgres.Open(t.Context(), pgtest.Admin(dsn), 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	inserts, err := queue.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	return postgres.New(pool, inserts, nil)
}

func newWorld(t testing.TB, tenants int) *world {
	t.Helper()
	w := &world{TB: t, dsn: pgtest.New(t)}
	w.store = open(t, w.dsn)
	for i := range tenants {
		made, err := w.store.CreateTenant(t.Context(), fmt.Sprint("tenant ", i), policy.StoredDefault())
		if err != nil {
			t.Fatal(err)
		}
		w.tenants = append(w.tenants, made)
		at := session.Address{Tenant: made.ID, ID: "s"}
		if _, _, err := w.store.Create(t.Context(), at, session.Change{WindowTokens: new(1000)}, nil); err != nil {
			t.Fatal(err)
		}
		w.write(at, 3)
	}
	return w
}

// write appends messages with what text formats have to escape, enough of them to be due.
func (w *world) write(at session.Address, n int) {
	w.Helper()
	for i := range n {
		body := fmt.Appendf(nil, `{"role":"user","content":"%d \\ \t tab\n\\N é %s"}`, i, strings.Repeat("word ", 400))
		m, err := wire.Inspect(session.OpenAIChat, body)
		if err != nil {
			w.Fatal(err)
		}
		message := session.NewMessage{Body: body, Role: m.Role, Tokens: m.Tokens, StartsUnit: m.StartsUnit, Flags: int32(m.Flags)}
		if _, _, err := w.store.Append(w.Context(), session.Append{Session: at, Format: session.OpenAIChat, Messages: []session.NewMessage{message}}); err != nil {
			w.Error(err)
			return
		}
	}
}

// contents returns the digest of each table's rows, whatever their order.
func contents(t testing.TB, dsn string) map[string]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `
		SELECT relname::text
		  FROM pg_class
		 WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname !~ '^(schema_|river_(leader|migration))'`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range names {
		var digest string
		err := conn.QueryRow(t.Context(), `SELECT count(*) || ' ' || coalesce(md5(string_agg(md5(r::text), '' ORDER BY md5(r::text))), '') FROM `+name+` r`).Scan(&digest)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = digest
	}
	return found
}

func verified(t testing.TB, dsn string) verify.Report {
	t.Helper()
	store := open(t, dsn)
	tenants, err := store.Tenants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all verify.Report
	verifier := verify.Verifier{Store: store}
	err = verifier.Run(t.Context(), verify.Scope{Tenants: tenants}, false, func(_, _ int64, r *verify.Report) error {
		all.Findings = append(all.Findings, r.Findings...)
		all.Sessions += r.Sessions
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestABackupComesBackByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	file := filepath.Join(t.TempDir(), "backup.zip")
	made, err := backup.Write(t.Context(), pgtest.Backup(w.dsn), file, "test")
	if err != nil {
		t.Fatal(err)
	}
	to := pgtest.NewEmpty(t)
	if _, err := backup.Restore(t.Context(), to, file); err != nil {
		t.Fatal(err)
	}
	want, got := contents(t, w.dsn), contents(t, to)
	for table, digest := range want {
		if got[table] != digest {
			t.Errorf("%s: %s came back, want %s", table, got[table], digest)
		}
	}
	if len(want) < 20 || want["messages"][:2] != "6 " || want["river_job"][:2] != "2 " || made.Rows() < 12 {
		t.Errorf("the test's database has too little: %v", want)
	}
	if report := verified(t, to); len(report.Findings) != 0 || report.Sessions != 2 {
		t.Errorf("%d sessions, findings %+v", report.Sessions, report.Findings)
	}
	at := session.Address{Tenant: w.tenants[0].ID, ID: "s"}
	again := &world{TB: t, dsn: to, store: open(t, to)}
	again.write(at, 1)
	if found, err := again.store.Session(t.Context(), at); err != nil || found.LastSeq != 4 {
		t.Errorf("after an append the session is %+v, %v", found, err)
	}
	if err := postgres.InTenant(t.Context(), again.store.Pool(), uuid.New(), pgx.TxOptions{}, func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM messages`).Scan(&n); err != nil || n != 0 {
			t.Errorf("row-level security is off: %d messages, %v", n, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if _, err := backup.Restore(t.Context(), to, file); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("restored into a database that has tenants: %v", err)
	}
}

// TestABackupDuringWritesShowsOneMoment writes to many sessions while backups are made, and restores the last.
func TestABackupDuringWritesShowsOneMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	dir := t.TempDir()
	first := make(chan struct{})
	var writers sync.WaitGroup
	for _, tenant := range w.tenants {
		writers.Go(func() {
			at := session.Address{Tenant: tenant.ID, ID: "s"}
			w.write(at, 5)
			<-first
			w.write(at, 20)
		})
	}
	var file string
	for n := range 3 {
		file = filepath.Join(dir, fmt.Sprint(n, ".zip"))
		if _, err := backup.Write(t.Context(), pgtest.Backup(w.dsn), file, "test"); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			close(first)
		}
	}
	writers.Wait()
	to := pgtest.NewEmpty(t)
	if _, err := backup.Restore(t.Context(), to, file); err != nil {
		t.Fatal(err)
	}
	if report := verified(t, to); len(report.Findings) != 0 || report.Sessions != 4 {
		t.Errorf("%d sessions, findings %+v", report.Sessions, report.Findings)
	}
}

// TestABackupOfANewerSchemaIsRefusedBeforeAnythingIsChanged changes the version in a backup's manifest.
func TestABackupOfANewerSchemaIsRefusedBeforeAnythingIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	dir := t.TempDir()
	whole, newer := filepath.Join(dir, "whole"), filepath.Join(dir, "newer")
	made, err := backup.Write(t.Context(), pgtest.Backup(w.dsn), whole, "test")
	if err != nil {
		t.Fatal(err)
	}
	made.Schema = 9999
	withManifest(t, whole, newer, made)
	to := pgtest.NewEmpty(t)
	if _, err := backup.Restore(t.Context(), to, newer); err == nil || !strings.Contains(err.Error(), "version 9999 of the schema: use a newer release") {
		t.Errorf("restored: %v", err)
	}
	if found := contents(t, to); len(found) != 0 {
		t.Errorf("the refused restore has made %v", found)
	}
	if _, err := backup.Restore(t.Context(), pgtest.API(to), whole); err == nil || !strings.Contains(err.Error(), "may make no table") {
		t.Errorf("restored with a login that may not make tables: %v", err)
	}
	if _, err := backup.Restore(t.Context(), to, whole); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), pgtest.Admin(to), whole); !errors.Is(err, postgres.ErrLogin) || !strings.Contains(err.Error(), "owns the schema") {
		t.Errorf("restored with a login that does not own the tables: %v", err)
	}
}

// withManifest copies a backup with another manifest.
func withManifest(t *testing.T, from, to string, manifest backup.Manifest) {
	t.Helper()
	source, err := zip.OpenReader(from)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	file, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	target := zip.NewWriter(file)
	for _, entry := range source.File {
		if entry.Name == "manifest.json" {
			continue
		}
		if err := target.Copy(entry); err != nil {
			t.Fatal(err)
		}
	}
	entry, err := target.Create("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(json.NewEncoder(entry).Encode(manifest), target.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNoBackupIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(dsn, name string) error {
		_, err := backup.Write(t.Context(), dsn, filepath.Join(dir, name), "test")
		return err
	}
	if err := write(pgtest.Backup(pgtest.New(t)), "empty"); !errors.Is(err, backup.ErrEmpty) {
		t.Errorf("an empty database: %v", err)
	}
	w := newWorld(t, 1)
	for _, dsn := range []string{pgtest.API(w.dsn), pgtest.Worker(w.dsn), pgtest.Admin(w.dsn)} {
		if err := write(dsn, "hidden"); !errors.Is(err, backup.ErrHidden) || !strings.Contains(err.Error(), "messages") {
			t.Errorf("a login that does not see all rows: %v", err)
		}
	}
	if err := write(w.dsn, "whole"); err != nil {
		t.Fatalf("the superuser: %v", err)
	}
	if err := write(w.dsn, "whole"); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a backup that is there: %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v: want the whole backup alone", files, err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	places := 40
	if testing.Short() {
		places = 12
	}
	to := pgtest.NewEmpty(t)
	for at := 64; at < len(whole); at += len(whole) / places {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 0x10
		file := filepath.Join(dir, "damaged")
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), to, file); err == nil {
			// Some bytes say nothing: times and permissions in the directory of a zip.
			t.Logf("byte %d of %d may change", at, len(whole))
			to = pgtest.NewEmpty(t)
		} else if !errors.Is(err, backup.ErrDamaged) && !strings.Contains(err.Error(), "form") {
			t.Errorf("byte %d changed: %v", at, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cut"), whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), to, filepath.Join(dir, "cut")); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("half a backup: %v", err)
	}
}
