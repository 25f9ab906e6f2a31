package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// administrator runs commands on a database.
type administrator struct {
	*testing.T
	url string
}

// run returns what a command that ends well prints on standard output and on standard error.
func (a administrator) run(args ...string) (stdout, stderr string) {
	a.Helper()
	var out, notes lockedBuffer
	cmd := program(a.Context(), append(args, "--database-url", a.url)...)
	cmd.Stdout, cmd.Stderr = &out, &notes
	if err := cmd.Run(); err != nil {
		a.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, &notes)
	}
	return out.String(), notes.String()
}

// members runs a command with --json, and returns the names of the members that its object or first object has.
func (a administrator) members(into any, args ...string) []string {
	a.Helper()
	out, _ := a.run(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		a.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	var object map[string]any
	var list []map[string]any
	if json.Unmarshal([]byte(out), &list) == nil {
		object = list[0]
	} else if err := json.Unmarshal([]byte(out), &object); err != nil {
		a.Fatal(err)
	}
	names := []string{}
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestTenantsAndKeysAreJSONOnRequest(t *testing.T) {
	t.Parallel()
	a := administrator{t, pgtest.New(t)}
	var tenant session.Tenant
	var tenants []session.Tenant
	var key protocol.NewKey
	var keys []session.APIKey
	got := [][]string{
		a.members(&tenant, "tenants", "create", "acme"),
		a.members(&tenants, "tenants", "list"),
		a.members(&key, "keys", "create", "--tenant=acme", "--name=ci"),
		a.members(&keys, "keys", "list", "--tenant=acme"),
	}
	listed := []string{"created_at", "expires_at", "id", "last4", "last_used_at", "name", "replaces", "revoked_at", "scopes"}
	want := [][]string{
		{"created_at", "id", "name"},
		{"created_at", "id", "name"},
		{"created_at", "expires_at", "id", "key", "last4", "last_used_at", "name", "replaces", "revoked_at", "scopes"},
		listed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if len(tenants) != 1 || tenants[0] != tenant || len(keys) != 1 || keys[0].ID != key.ID || !wellFormed(key.Text) {
		t.Errorf("tenant %v listed as %v, key %v as %v", tenant, tenants, key, keys)
	}
}

func TestRevokingTwiceIsReported(t *testing.T) {
	t.Parallel()
	a := administrator{t, pgtest.New(t)}
	a.run("tenants", "create", "default")
	var key protocol.NewKey
	a.members(&key, "keys", "create")
	if _, said := a.run("keys", "revoke", key.ID.String()); !strings.HasPrefix(said, "revoked;") {
		t.Errorf("the first time: %s", said)
	}
	if _, said := a.run("keys", "revoke", key.ID.String()); !strings.Contains(said, "it was revoked before") {
		t.Errorf("the second time: %s", said)
	}
}

func TestADatabaseURLThatIsNoneIsNotShown(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"migrate"}, {"keys", "list"}, {"up", "--data", t.TempDir()}} {
		cmd := program(t.Context(), args...)
		cmd.Env = append(cmd.Env, "DATABASE_URL=postgres://u:hush/hush@h/x")
		out, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != exitUsage {
			t.Errorf("%v ended with %v", args, err)
		}
		if !strings.Contains(string(out), "DATABASE_URL") || strings.Contains(string(out), "hush") {
			t.Errorf("%v said %s", args, out)
		}
	}
}

func TestKeysAreMadeWithScopesARoleOrForAnOperator(t *testing.T) {
	t.Parallel()
	a := administrator{t, pgtest.New(t)}
	a.run("tenants", "create", "default")
	for flag, want := range map[string][]session.Scope{
		"--scopes=sessions:read,erase": {session.SessionsRead, session.ScopeErase}, "--role=viewer": session.Viewer.Scopes(), "--name=x": session.KeyScopes(),
	} {
		var key protocol.NewKey
		if a.members(&key, "keys", "create", flag); !slices.Equal(key.Scopes, want) {
			t.Errorf("%s: %v", flag, key.Scopes)
		}
	}
	if text, _ := a.run("keys", "create", "--operator"); !wellFormedOperator(strings.TrimSpace(text)) {
		t.Errorf("an operator's key is %q", text)
	}
	for _, flags := range [][]string{{"--scopes=read"}, {"--role=root"}, {"--role=viewer", "--scopes=erase"}, {"--role=viewer", "--operator"}} {
		cmd := program(t.Context(), append([]string{"keys", "create", "--database-url", a.url}, flags...)...)
		out, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != exitUsage || !strings.Contains(string(out), strings.Trim(strings.Split(flags[0], "=")[0], "-")) {
			t.Errorf("%v: %v, %s", flags, err, out)
		}
	}
}

// TestTheFirstStartMakesAKeyOfEachKind starts on an empty directory, on one of before, and again.
func TestTheFirstStartMakesAKeyOfEachKind(t *testing.T) {
	t.Parallel()
	dsn, data := pgtest.New(t), t.TempDir()
	held := map[string]string{}
	for range 2 {
		l := logins{admin: config.Database{URL: pgtest.Admin(dsn), Connections: 2}}
		keyFile, err := l.prepare(t.Context(), data, false, pgtest.Admin(dsn))
		if err != nil || keyFile != filepath.Join(data, "key") {
			t.Fatal(keyFile, err)
		}
		for name, fits := range map[string]func(string) bool{"key": wellFormed, operatorKeyFile: wellFormedOperator} {
			file := filepath.Join(data, name)
			key, err := readKey(file)
			info, statErr := os.Stat(file)
			if err != nil || statErr != nil || !fits(key) || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %q, %v, %v", name, key, err, statErr)
			}
			if held[name] != "" && held[name] != key {
				t.Errorf("%s was replaced", name)
			}
			held[name] = key
		}
	}
	none := t.TempDir()
	l := logins{admin: config.Database{URL: pgtest.Admin(dsn), Connections: 2}}
	if _, err := l.prepare(t.Context(), none, false, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(none, operatorKeyFile)); !os.IsNotExist(err) {
		t.Errorf("without a login for operators there is a key: %v", err)
	}
}

// TestAmongOtherTenantsTheFirstStartMakesNone: it would be an empty one, beside those of a restored backup.
func TestAmongOtherTenantsTheFirstStartMakesNone(t *testing.T) {
	t.Parallel()
	a, data := administrator{t, pgtest.New(t)}, t.TempDir()
	a.run("tenants", "create", "acme")
	file, err := firstKey(t.Context(), config.Database{URL: a.url, Connections: 2}, data)
	left, _ := os.ReadDir(data)
	if file != "" || err != nil || len(left) > 0 {
		t.Errorf("%q, %v, %v", file, err, left)
	}
	if text, _ := a.run("tenants", "list"); strings.Contains(text, defaultTenant) {
		t.Error(text)
	}
}

func TestAKeyFileWithoutAKeyIsReplaced(t *testing.T) {
	t.Parallel()
	db, data := config.Database{URL: pgtest.New(t), Connections: 2}, t.TempDir()
	file := filepath.Join(data, "key")
	for _, held := range []string{"", "\n", "vk_0123"} {
		if err := os.WriteFile(file, []byte(held), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := firstKey(t.Context(), db, data); err != nil {
			t.Fatal(err)
		}
		key, err := readKey(file)
		if err != nil || !wellFormed(key) {
			t.Errorf("%q was followed by %q, %v", held, key, err)
		}
		if _, err := firstKey(t.Context(), db, data); err != nil {
			t.Fatal(err)
		}
		if again, err := readKey(file); again != key || err != nil {
			t.Errorf("a good key was replaced: %v", err)
		}
	}
	entries, err := os.ReadDir(data)
	if err != nil || len(entries) != 1 {
		t.Errorf("files %v, %v; want the key alone", entries, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestATenantsLimitsAreSetAndShown(t *testing.T) {
	t.Parallel()
	a := administrator{t, pgtest.New(t)}
	made, _ := a.run("tenants", "create", "acme")
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(made)
	for i, step := range []struct {
		args []string
		want session.Quotas
	}{
		{nil, session.Quotas{}},
		{[]string{`--set={"sessions":100,"requests_per_second":2.5}`}, session.Quotas{Sessions: 100, Requests: 2.5}},
		{nil, session.Quotas{Sessions: 100, Requests: 2.5}},
		{[]string{"--set={}"}, session.Quotas{}},
	} {
		said, _ := a.run(append([]string{"tenants", "limits", [...]string{"acme", id}[i%2]}, step.args...)...)
		var got session.Quotas
		if err := json.Unmarshal([]byte(said), &got); err != nil || got != step.want {
			t.Errorf("%q printed %s, want %+v", step.args, said, step.want)
		}
	}
}
