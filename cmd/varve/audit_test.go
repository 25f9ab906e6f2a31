package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
)

// superuser logs in to the database that a process has of its own in data.
func superuser(t *testing.T, data string) *pgx.Conn {
	t.Helper()
	url, err := embedded.Running(data, embedded.User)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the test is over
	return conn
}

// TestTheTrailIsListedExportedAndVerified changes a row and has three commands find it.
func TestTheTrailIsListedExportedAndVerified(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	u := startUp(t, data, "--addr", freeAddress(t))
	u.want(201, "PUT", "/v1/sessions/one", "")
	u.want(201, "PUT", "/v1/sessions/two", "")
	if out, code := u.exits("keys", "create", "--name", "second"); code != 0 {
		t.Fatalf("keys create: %d %s", code, out)
	}
	listed, code := u.exits("audit", "list", "--action", "session.create", "--object", "two", "--until", "2999-01-01T00:00:00Z")
	if lines := strings.Split(strings.TrimSpace(listed), "\n"); code != 0 || len(lines) != 2 || !regexp.MustCompile(`^3 .*key +\S+ +session.create +session +two +req_\S+ +127.0.0.1:\d+$`).MatchString(lines[1]) {
		t.Errorf("audit list: %d\n%s", code, listed)
	}
	if listed, _ := u.exits("audit", "list", "--limit", "1"); !regexp.MustCompile(`4 .*command +- +key.create +key +\S+ +- +\S+@`).MatchString(listed) {
		t.Errorf("the key that a command made: %s", listed)
	}
	good, code := u.exits("audit", "verify")
	head := regexp.MustCompile(`\b4:[0-9a-f]{64}`).FindString(good)
	if code != 0 || head == "" || !strings.HasPrefix(good, "nothing is wrong") {
		t.Fatalf("audit verify: %d %s", code, good)
	}
	if out, code := u.exits("audit", "verify", "--operator"); code != 0 || !strings.Contains(out, " 2:") {
		t.Errorf("the operators' trail: %d %s", code, out)
	}
	if out, code := u.exits("audit", "list", "--operator", "--action", "key.create"); code != 0 || !regexp.MustCompile(`2 .*key.create +key `).MatchString(out) {
		t.Errorf("the operators' trail, listed: %d %s", code, out)
	}
	operator, err := readKey(filepath.Join(data, operatorKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"export", "verify"} {
		out, code := u.exits("audit", command, "--operator", "--key", operator, "--database-url", "postgres://127.0.0.1:1/none")
		if code != 0 || !strings.Contains(out, "2:") {
			t.Errorf("audit %s of the operators' trail over HTTP: %d %s", command, code, out)
		}
	}
	file := filepath.Join(t.TempDir(), "trail.jsonl")
	if out, code := u.exits("audit", "export", "-o", file); code != 0 {
		t.Errorf("audit export: %d %s", code, out)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "\n") != 5 {
		t.Errorf("the export: %v\n%s", err, text)
	}
	owner := superuser(t, data)
	if _, err := owner.Exec(t.Context(), `ALTER TABLE audit_trail DISABLE TRIGGER USER; UPDATE audit_trail SET object_id = 'three' WHERE object_id = 'two'`); err != nil {
		t.Fatal(err)
	}
	const changed = "row 3 was changed: its hash is not that of what it says"
	for _, args := range [][]string{{"audit", "verify"}, {"audit", "verify", "--json"}, {"verify"}, {"verify", "--tenant", "default", "--repair"}} {
		if out, code := u.exits(args...); code != exitFindings || !strings.Contains(out, changed) {
			t.Errorf("%v: %d\n%s", args, code, out)
		}
	}
	for want, args := range map[int][][]string{
		0:            {{"audit", "verify", file, "--expect", head}, {"audit", "verify", "--after", head}, {"verify", "--session", "one"}},
		exitFindings: {{"audit", "verify", file, "--expect", "9" + head}, {"audit", "verify", "--after", strings.Replace(head, "4:", "3:", 1)}},
		exitUsage:    {{"audit", "verify", "--expect", "4"}, {"audit", "verify", file, "--after", head}, {"audit", "verify", "--after", head, "--expect", head}},
	} {
		for _, line := range args {
			if out, code := u.exits(line...); code != want {
				t.Errorf("%v exits with %d, want %d:\n%s", line, code, want, out)
			}
		}
	}
}

// TestAShortenedTrailIsVerified has the sweep remove the first rows of a trail, and looks at it with the commands.
func TestAShortenedTrailIsVerified(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	u := startUp(t, data, "--addr", freeAddress(t), "--keep-audit", "720h", "--sweep-interval", "1s")
	for _, id := range []string{"one", "two", "three"} {
		u.want(201, "PUT", "/v1/sessions/"+id, "")
	}
	owner := superuser(t, data)
	if _, err := owner.Exec(t.Context(), `
		SET session_replication_role = replica;
		DO $$
		DECLARE
		    r    audit_trail;
		    last bytea;
		BEGIN
		    LOCK TABLE audit_heads, audit_trail;
		    FOR r IN SELECT * FROM audit_trail WHERE tenant_id <> '00000000-0000-0000-0000-000000000000' ORDER BY n LOOP
		        r.previous := coalesce(last, r.previous);
		        r.at := CASE WHEN r.n <= 2 THEN now() - interval '40 days' ELSE r.at END;
		        last := audit_hash(r);
		        UPDATE audit_trail SET at = r.at, previous = r.previous, hash = last WHERE tenant_id = r.tenant_id AND n = r.n;
		    END LOOP;
		    UPDATE audit_heads SET hash = last WHERE tenant_id <> '00000000-0000-0000-0000-000000000000';
		END
		$$`); err != nil {
		t.Fatal(err)
	}
	u.want(201, "PUT", "/v1/sessions/four", "")
	begins := regexp.MustCompile(`^nothing is wrong; the trail begins behind (2:[0-9a-f]{64}); the head of the chain is \d+:`)
	var out string
	pruned := poll(untilDeadline(t), 100*time.Millisecond, func() bool {
		out, _ = u.exits("audit", "verify")
		return begins.MatchString(out)
	})
	if !pruned {
		t.Fatalf("audit verify: %s", out)
	}
	last := begins.FindStringSubmatch(out)[1]
	if listed, _ := u.exits("audit", "list", "--action", "audit.prune"); !regexp.MustCompile(`varve +- +audit.prune +tenant `).MatchString(listed) {
		t.Errorf("audit list: %s", listed)
	}
	file := filepath.Join(t.TempDir(), "trail.jsonl")
	if out, code := u.exits("audit", "export", "-o", file); code != 0 {
		t.Errorf("audit export: %d %s", code, out)
	}
	for want, args := range map[int][][]string{
		0: {
			{"audit", "verify", file}, {"audit", "verify", file, "--expect", last}, {"audit", "verify", "--after", last}, {"verify"},
			{"audit", "verify", "--operator"},
		},
		exitFindings: {
			{"audit", "verify", "--expect", strings.Replace(last, "2:", "1:", 1)}, {"audit", "verify", "--after", strings.Replace(last, "2:", "1:", 1)},
		},
	} {
		for _, line := range args {
			if out, code := u.exits(line...); code != want || code != 0 && !strings.Contains(out, "cannot be proved: the rows up to 2 were removed") {
				t.Errorf("%v exits with %d, want %d:\n%s", line, code, want, out)
			}
		}
	}
}
