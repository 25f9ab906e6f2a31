package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestThePythonClientWorksAgainstVarveUp runs the tests of clients/python, and holds what is made there to the API's
// description.
func TestThePythonClientWorksAgainstVarveUp(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(t.Context(), python, "-c", "import sys; sys.exit(sys.version_info < (3, 9))").Run()
	}
	if err != nil {
		t.Skipf("clients/python is not tested, for want of Python 3.9: %v", err)
	}
	u := startUp(t, filepath.Join(t.TempDir(), "data"))
	for _, args := range [][]string{
		{"generate.py", u.url + "/openapi.json", "--check"}, {"-W", "error", "-m", "unittest", "tests.test_client"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		run := exec.CommandContext(ctx, python, args...)
		run.Dir = filepath.Join("..", "..", "clients", "python")
		run.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "VARVE_URL="+u.url, "VARVE_KEY="+u.key)
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("python3 %s: %v\n%s", args, err, out)
		}
	}
	u.stop()
}

// TestTheTypeScriptClientWorksAgainstVarveUp compiles clients/typescript, holds its types to the API's description, and
// runs its tests.
func TestTheTypeScriptClientWorksAgainstVarveUp(t *testing.T) {
	t.Parallel()
	dir := installed(t, "clients/typescript")
	u := startUp(t, filepath.Join(t.TempDir(), "data"))
	for _, args := range [][]string{
		{"generate.mjs", u.url + "/openapi.json", "--check"}, {"node_modules/typescript/bin/tsc"},
	} {
		run := exec.CommandContext(t.Context(), "node", args...)
		run.Dir = dir
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("node %s: %v\n%s", args, err, out)
		}
	}
	nodeTest(t, dir, "VARVE_URL="+u.url, "VARVE_KEY="+u.key)
	u.stop()
}
