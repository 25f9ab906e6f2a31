package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// installWithin bounds an installation. What npm has loaded until then, it need not load again.
const installWithin = 60 * time.Second

// skip ends a test that cannot run, for one reason.
func skip(t testing.TB, reason error) {
	t.Helper()
	if os.Getenv(Required) != "" {
		t.Fatalf("%s is set, and views cannot be held to others' rules: %v", Required, reason)
	}
	t.Skipf("views are not held to others' rules: %v", reason)
}

// installed returns a folder with the packages of package-lock.json. It is in the user's cache, by the digest of that
// file, and stays there.
func installed(t testing.TB) string {
	t.Helper()
	lock, err := files.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		skip(t, err)
	}
	digest := sha256.Sum256(lock)
	dir := filepath.Join(cache, "varve", "peers-"+hex.EncodeToString(digest[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		skip(t, err)
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		skip(t, err)
	}
	defer func() { _ = os.RemoveAll(made) }()
	if err := install(t.Context(), made); err != nil {
		skip(t, err)
	}
	if err := os.Rename(made, dir); err != nil { // unless another process was faster
		if _, err := os.Stat(dir); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// install has npm install the packages into a folder.
func install(ctx context.Context, dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, installWithin)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund",
		"--prefer-offline", "--fetch-retries=1")
	npm.Dir, npm.WaitDelay = dir, time.Second
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w, %s", err, out[max(0, len(out)-500):])
	}
	return nil
}
