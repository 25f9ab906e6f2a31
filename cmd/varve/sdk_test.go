package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// offline is what npm says when there is no registry to install from.
var offline = regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|network`)

// TestTheClientsOfOpenAIWorkAgainstVarveUp installs OpenAI's packages from npm and runs test/openai-sdk with them. There is
// no lock file: its entries name the registry that they were made at.
func TestTheClientsOfOpenAIWorkAgainstVarveUp(t *testing.T) {
	if testing.Short() {
		t.Skip("installs OpenAI's packages")
	}
	t.Parallel()
	dir := installed(t, "test/openai-sdk")
	u, _ := shareUp(t)
	nodeTest(t, dir, "VARVE_URL="+u.url, "VARVE_KEY="+u.key)
}

// installed returns a copy of a folder with its packages from npm. It skips the test where there is no npm, or none of
// its registry.
func installed(t *testing.T, folder string) (dir string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not run: %v", folder, err)
		}
	}
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", folder))); err != nil {
		t.Fatal(err)
	}
	install(t, dir)
	return dir
}

// install installs the packages of a folder, or skips the test.
func install(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		if offline.Match(out) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Skipf("%s is not run, npm cannot reach its registry:\n%s", filepath.Base(dir), out)
		}
		t.Fatalf("npm install: %v\n%s", err, out)
	}
}

// nodeTest runs the tests of a folder.
func nodeTest(t *testing.T, dir string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	tests := exec.CommandContext(ctx, "node", "--test")
	tests.Dir = dir
	tests.Env = append(os.Environ(), env...)
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("node --test: %v\n%s", err, out)
	}
}
