package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// update has the clients' types made anew: go test ./cmd/varve -run 'TestThePython|TestTheTypeScript' -update
var update = flag.Bool("update", false, "make the types of the clients anew")

// checked returns what a generator of types is asked to do: to hold them to the description, or to make them.
func checked(args ...string) []string {
	if *update {
		return args
	}
	return append(args, "--check")
}

// clientsEnv returns the environment of the clients' own tests.
func clientsEnv(u *up) []string {
	env := []string{"VARVE_URL=" + u.url, "VARVE_KEY=" + u.key}
	if testing.Short() {
		env = append(env, "VARVE_SHORT=1")
	}
	return env
}

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
	u, _ := shareUp(t)
	for _, args := range [][]string{
		checked("generate.py", u.url+"/openapi.json"), {"-W", "error", "-m", "unittest", "tests.test_client"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		run := exec.CommandContext(ctx, python, args...)
		run.Dir = filepath.Join("..", "..", "clients", "python")
		run.Env = append(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), clientsEnv(u)...)
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("python3 %s: %v\n%s", args, err, out)
		}
	}
}

// TestTheTypeScriptClientWorksAgainstVarveUp compiles clients/typescript, holds its types to the API's description, and
// runs its tests and those of the adapters below it, each with its framework; -short takes one of them.
func TestTheTypeScriptClientWorksAgainstVarveUp(t *testing.T) {
	t.Parallel()
	dir := installed(t, "clients/typescript")
	u, _ := shareUp(t)
	env := clientsEnv(u)
	node(t, dir, checked("generate.mjs", u.url+"/openapi.json")...)
	if made := filepath.Join("src", "types.ts"); *update {
		text, err := os.ReadFile(filepath.Join(dir, made))
		if err == nil {
			err = os.WriteFile(filepath.Join("..", "..", "clients", "typescript", made), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	node(t, dir, "node_modules/typescript/bin/tsc")
	nodeTest(t, filepath.Join(dir, "test"), env...)
	nodeAgent(t, u, dir, "typescript.mjs", "openai-chat")
	adapters, err := filepath.Glob(filepath.Join(dir, "*", "package.json"))
	if err != nil || len(adapters) == 0 {
		t.Fatalf("%d adapters, %v", len(adapters), err)
	}
	for _, path := range adapters {
		adapter := filepath.Dir(path)
		if testing.Short() && filepath.Base(adapter) != "ai-sdk" {
			continue // the packages that they need take a minute to install
		}
		t.Run(filepath.Base(adapter), func(t *testing.T) {
			_ = os.Remove(filepath.Join(adapter, ".npmrc")) // which leaves out Claude itself
			install(t, adapter)
			node(t, adapter, "node_modules/typescript/bin/tsc")
			nodeTest(t, adapter, env...)
			if format := adaptersFormats[filepath.Base(adapter)]; format != "" {
				nodeAgent(t, u, adapter, filepath.Base(adapter)+".mjs", format)
			}
		})
	}
}

// adaptersFormats names the formats of the sessions of those adapters that samples/agents has an agent for.
var adaptersFormats = map[string]string{
	"ai-sdk": "ai-sdk", "claude-agent-sdk": "anthropic", "langgraph": "openai-chat", "openai-agents": "openai-responses",
}

// nodeAgent runs an agent of samples/agents in the folder of a package that it uses.
func nodeAgent(t *testing.T, u *up, dir, name, format string) {
	t.Helper()
	program, err := os.ReadFile(filepath.Join("..", "..", "samples", "agents", name))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), program, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, window := range agentWindows() {
		runAgent(t, u, window, format, dir, "node", name)
	}
}

// node runs a program in a folder.
func node(t *testing.T, dir string, args ...string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "node", args...)
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("node %s: %v\n%s", args, err, out)
	}
}
