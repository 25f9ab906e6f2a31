package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAShareOfTheSessionsIsAPercentageOrAFraction(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]share{"1%": 0.01, "100 %": 1, "0.25": 0.25, "1": 1} {
		var s share
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s is %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "%", "0", "0%", "101%", "-1%", "NaN", "1.5", "all"} {
		if err := new(share).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "1%") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// exits runs a command and returns what it printed and its exit code.
func (u *up) exits(args ...string) (out string, code int) {
	u.Helper()
	out, err := u.client(args...)
	var exited *exec.ExitError
	switch {
	case errors.As(err, &exited):
		return out, exited.ExitCode()
	case err != nil:
		u.Fatal(err)
	}
	return out, 0
}

func TestVerifyFindsRepairsAndExitsAccordingly(t *testing.T) {
	t.Parallel()
	file, data, address := filepath.Join(t.TempDir(), "all.ndjson"), filepath.Join(t.TempDir(), "data"), freeAddress(t)
	bigExport(t, file, 30)
	u := startUp(t, data, "--addr", address)
	importing := program(t.Context(), "import", file, "--url", u.url, "--data", data)
	if err := importing.Start(); err != nil {
		t.Fatal(err)
	}
	u.awaitLines(500)
	u.kill() // everything, in the middle of a batch
	_ = importing.Process.Kill()
	_ = importing.Wait()
	u = startUp(t, data, "--addr", address)
	if out, err := u.client("import", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, code := u.exits("verify"); code != 0 || !strings.Contains(out, "30 sessions, 3,000 messages") || !strings.Contains(out, "nothing is wrong") {
		t.Errorf("after a kill verify exits with %d:\n%s", code, out)
	}

	admin := superuser(t, data)
	if _, err := admin.Exec(t.Context(), `UPDATE sessions SET tail_bytes = 1 WHERE id = 's7'`); err != nil {
		t.Fatal(err)
	}
	if out, code := u.exits("verify"); code != exitFindings || !strings.Contains(out, "counter: session s7, tail_bytes") || !strings.Contains(out, "varve verify --repair") {
		t.Errorf("of a wrong counter verify exits with %d:\n%s", code, out)
	}
	if out, code := u.exits("verify", "--session", "s6", "--tenant", "default"); code != 0 {
		t.Errorf("of another session verify exits with %d:\n%s", code, out)
	}
	if out, code := u.exits("verify", "--repair", "--json"); code != 0 || !strings.Contains(out, `"repaired":"it was counted again"`) || !strings.Contains(out, `"findings":1,"left":0`) {
		t.Errorf("with --repair verify exits with %d:\n%s", code, out)
	}
	if out, code := u.exits("verify", "--sample", "100%"); code != 0 {
		t.Errorf("after the repair verify exits with %d:\n%s", code, out)
	}
	if out, code := u.exits("verify", "--session", "nobody"); code != exitNotFound {
		t.Errorf("of a session that does not exist verify exits with %d:\n%s", code, out)
	}
	if out, code := u.exits("verify", "--last"); code != 0 || !strings.Contains(out, "tenant default: ") {
		t.Errorf("with --last verify exits with %d:\n%s", code, out)
	}
	if out, code := u.exits("verify", "--database-url", "postgres://127.0.0.1:1/none"); code != exitUnverified {
		t.Errorf("without a database verify exits with %d:\n%s", code, out)
	}
}
