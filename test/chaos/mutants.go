package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// edit replaces a text of a file of the product.
type edit struct{ file, old, new string }

// mutant is a defect that a run must find.
type mutant struct {
	name  string
	edits []edit
	only  string // the faults that bring it to light, "" for all
}

// mutants are the defects that prove the checks.
var mutants = []mutant{
	{name: "no-idempotency-record", only: "lose answers,cut", edits: []edit{
		{"internal/postgres/append_statement.go", "statement(\"append\", \"{set}\", set,",
			"statement(\"append\", \"AND NOT @locked\\n\", \"AND NOT @locked AND false\\n\", \"{set}\", set,"},
		{"internal/postgres/idempotency.go", "\tif id == nil {\n\t\treturn nil\n", "\tif true {\n\t\treturn nil\n"},
	}},
	{name: "no-lock", edits: []edit{
		{"internal/postgres/lock.go", "id = $2 FOR NO KEY UPDATE", "id = $2"},
		{"internal/postgres/lock.go", "key = $2 FOR NO KEY UPDATE", "key = $2"},
	}},
	{name: "commit-without-cas", only: "SIGSTOP worker", edits: []edit{
		{"internal/postgres/commit.go", "if row.checkpoint != o.Base {\n\t\t\treturn session.ErrStale\n\t\t}",
			"o.Base = row.checkpoint"},
	}},
	{name: "persist-after-commit", only: "cut worker,kill -9 worker", edits: []edit{
		{"internal/compactor/run.go",
			"if err := r.persist(ctx, p.window, p.Plan.Results[p.persisted:])",
			"if err := ctx.Err()"},
		{"internal/compactor/run.go", "\tr.step(\"committed\")\n", "\tr.step(\"committed\")\n" +
			"\ttime.Sleep(200 * time.Millisecond)\n" +
			"\t_ = r.persist(ctx, p.window, p.Plan.Results[p.persisted:])\n"},
		{"internal/postgres/commit.go", "tenant, key, o.Base+1, c.Refs)", "tenant, key, o.Base+1, []string{})"},
	}},
	{name: "no-sweep", only: "lost jobs", edits: []edit{
		{"internal/jobs/sweep.go", "\tinserted, err := w.Store.Sweep(ctx)\n",
			"\tif true {\n\t\treturn nil\n\t}\n\tinserted, err := w.Store.Sweep(ctx)\n"},
	}},
	{name: "etag-without-checkpoint", only: "cut client-api", edits: []edit{
		{"internal/api/negotiate.go", "strconv.AppendInt(b, int64(v.Checkpoint), 10)", "strconv.AppendInt(b, 0, 10)"},
	}},
}

func mutantNamed(name string) (mutant, error) {
	names := []string{}
	for _, m := range mutants {
		if m.name == name {
			return m, nil
		}
		names = append(names, m.name)
	}
	return mutant{}, fmt.Errorf("there is no mutant %q; there are %s", name, strings.Join(names, ", "))
}

// applied returns the files of the mutant, by name, with the defect.
func (m mutant) applied(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.edits {
		if _, read := files[e.file]; !read {
			source, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			files[e.file] = string(source)
		}
		if n := strings.Count(files[e.file], e.old); n != 1 {
			return nil, fmt.Errorf("mutant %s: %s has this text %d times, not once:\n%s", m.name, e.file, n, e.old)
		}
		files[e.file] = strings.Replace(files[e.file], e.old, e.new, 1)
	}
	return files, nil
}

// overlay writes what go build needs to build the mutant from the sources as they are, and returns its flags.
func (m mutant) overlay(root, dir string) ([]string, error) {
	files, err := m.applied(root)
	if err != nil {
		return nil, err
	}
	replaced := object{}
	for name, text := range files {
		changed := filepath.Join(dir, strings.ReplaceAll(name, "/", "_")+".txt")
		if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
			return nil, err
		}
		replaced[filepath.Join(root, name)] = changed
	}
	document, err := json.Marshal(object{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "overlay.json")
	return []string{"-overlay", path}, os.WriteFile(path, document, 0o644)
}

// programs are the paths of the processes that run.
type programs struct{ api, worker string }

// build builds the processes, with a defect if one is named.
func build(ctx context.Context, dir, defect string) (p programs, err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return p, err
	}
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if defect != "" {
		m, err := mutantNamed(defect)
		if err != nil {
			return p, err
		}
		flags, err := m.overlay(root, dir)
		if err != nil {
			return p, err
		}
		args = append(args, flags...)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/api", "./cmd/worker")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return p, fmt.Errorf("%w\n%s", err, out)
	}
	return programs{filepath.Join(dir, "api"), filepath.Join(dir, "worker")}, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.TrimSpace(string(out)), err
}
