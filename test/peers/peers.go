// Package peers holds views to rules that others wrote: the schemas that providers publish, and the packages that send
// views to them (npm). The checks are a program for Node, peers.mjs, of which a test starts one process.
//
// Start at Start and Check. published.mjs has the schemas, requests.mjs what endpoints refuse beyond them, packages.mjs
// the packages. schemas.mjs writes the schemas anew. Known lists what is not as these rules want it, and why.
package peers

import (
	"bufio"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed *.mjs package.json package-lock.json schemas
var files embed.FS

// Required names the variable of the environment that makes tests fail that would be skipped for want of npm.
const Required = "VARVE_PEERS"

// View is a view and what it is checked for.
type View struct {
	Format   string            `json:"format"`
	Models   []string          `json:"models"` // that it is for, "" for one that is not known
	System   json.RawMessage   `json:"system,omitempty"`
	Messages []json.RawMessage `json:"messages"`
	Open     bool              `json:"open"` // calls at its end may wait for their results
	Pipe     bool              `json:"pipe"` // it is given to the packages, too
}

// Violation is a rule that a view breaks.
type Violation struct {
	By    string `json:"by"`    // what was checked, and the schema, package or endpoint that refuses it
	At    string `json:"at"`    // the number of the message and the path in it
	What  string `json:"what"`  // what is wrong
	Model string `json:"model"` // the first model that it is wrong for
}

// Checker is a process that checks views. It serves one goroutine.
type Checker struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// Schema returns a published schema by its name in the folder schemas.
func Schema(t testing.TB, name string) []byte {
	t.Helper()
	data, err := files.ReadFile("schemas/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Start starts a Checker, which ends with the test. The test is skipped where there is no Node, or no npm that can
// install the packages, unless the environment says that it is Required.
func Start(t testing.TB) *Checker {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		skip(t, err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(installed(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "peers.mjs")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &Checker{in: in, out: bufio.NewReader(out)}
}

// Check returns what is wrong with a view.
func (c *Checker) Check(v *View) ([]Violation, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, v.Messages)
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("the checks have ended: %w", err)
	}
	answer, err := c.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the checks have ended: %w", err)
	}
	var found struct{ Violations []Violation }
	if err := json.Unmarshal(answer, &found); err != nil {
		return nil, fmt.Errorf("%w: %s", err, answer)
	}
	return found.Violations, nil
}
