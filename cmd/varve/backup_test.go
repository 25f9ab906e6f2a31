package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPrivateClusterIsBackedUpWhileItRunsAndMovesToAnotherDirectory restores what imported sessions became.
func TestAPrivateClusterIsBackedUpWhileItRunsAndMovesToAnotherDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	export, file := filepath.Join(dir, "all.ndjson"), filepath.Join(dir, "backup.zip")
	data, moved := filepath.Join(dir, "data"), filepath.Join(dir, "moved")
	bigExport(t, export, 5)
	u := startUp(t, data)
	if out, code := u.exits("backup", file); code != 0 || !strings.Contains(out, "holds") {
		t.Fatalf("a backup with a tenant alone: exit code %d\n%s", code, out)
	}
	if out, err := u.client("import", export); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, code := u.exits("backup", file); code == 0 || !strings.Contains(out, "already exists") {
		t.Errorf("over another backup: exit code %d\n%s", code, out)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if out, code := u.exits("backup", file); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	_, want, err := u.call("GET", "/v1/sessions/s3/messages?limit=1000", "")
	if err != nil {
		t.Fatal(err)
	}
	u.stop()
	if out, err := program(t.Context(), "restore", file, "--data", moved).CombinedOutput(); err != nil || !strings.Contains(string(out), "nothing is wrong") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := program(t.Context(), "restore", file, "--data", moved).CombinedOutput(); err == nil || !strings.Contains(string(out), "not empty") {
		t.Errorf("a second time: %v\n%s", err, out)
	}
	key, err := os.ReadFile(filepath.Join(data, "key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(moved, "key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	u = startUp(t, moved)
	defer u.stop()
	if _, got, err := u.call("GET", "/v1/sessions/s3/messages?limit=1000", ""); err != nil || !bytes.Equal(got, want) || len(got) < 1000 {
		t.Errorf("the log came back with %d bytes, want %d, %v", len(got), len(want), err)
	}
}
