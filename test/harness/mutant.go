package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Edit replaces a text of a file of the product.
type Edit struct{ file, old, new string }

// Replace returns the edit that replaces a text, which must stand in the file once.
func Replace(file, old, new string) Edit { return Edit{file, old, new} }

// Mutant is a defect that a run must find: it proves the checks of a program.
type Mutant struct {
	Name  string
	Only  string // the faults that bring it to light, "" for all
	Finds string // the kind of anomaly that it is found by, "" for any
	Edits []Edit
}

// Fit returns an error for each mutant whose place in the sources has changed. It builds nothing.
func Fit(ctx context.Context, mutants []Mutant) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	var all []error
	for _, m := range mutants {
		_, err := m.applied(root)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// Named returns the mutant of a name, and nil for "".
func Named(mutants []Mutant, name string) (*Mutant, error) {
	if name == "" {
		return nil, nil
	}
	var names []string
	for _, m := range mutants {
		if m.Name == name {
			return &m, nil
		}
		names = append(names, m.Name)
	}
	return nil, fmt.Errorf("there is no mutant %q; there are %s", name, strings.Join(names, ", "))
}

// Programs are the paths of Varve's processes.
type Programs struct{ API, Worker string }

// Build builds Varve into a directory, with the defect of a mutant unless it is nil.
func Build(ctx context.Context, dir string, defect *Mutant) (p Programs, err error) {
	err = BuildOf(ctx, dir, defect, "./cmd/api", "./cmd/worker")
	return Programs{filepath.Join(dir, "api"), filepath.Join(dir, "worker")}, err
}

// BuildOf builds programs of these packages into a directory, with the defect of a mutant unless it is nil.
func BuildOf(ctx context.Context, dir string, defect *Mutant, packages ...string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	args := []string{"build", "-ldflags=-s -w", "-o", dir + string(filepath.Separator)}
	if defect != nil {
		flags, err := defect.overlay(root, dir)
		if err != nil {
			return err
		}
		args = append(args, flags...)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// Tested runs go test with the defect of a mutant, and returns what it printed, and an error unless all tests passed.
func Tested(ctx context.Context, dir string, defect *Mutant, args ...string) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	flags, err := defect.overlay(root, dir)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test"}, flags...), args...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// applied returns the files of the mutant, by name, with the defect.
func (m *Mutant) applied(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.Edits {
		if _, read := files[e.file]; !read {
			source, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			files[e.file] = string(source)
		}
		if n := strings.Count(files[e.file], e.old); n != 1 {
			return nil, fmt.Errorf("mutant %s: %s has this text %d times, not once:\n%s", m.Name, e.file, n, e.old)
		}
		files[e.file] = strings.Replace(files[e.file], e.old, e.new, 1)
	}
	return files, nil
}

// overlay writes what go build needs to build the mutant from the sources as they are, and returns its flags.
func (m *Mutant) overlay(root, dir string) ([]string, error) {
	files, err := m.applied(root)
	if err != nil {
		return nil, err
	}
	replaced := map[string]string{}
	for name, text := range files {
		changed := filepath.Join(dir, strings.ReplaceAll(name, "/", "_")+".txt")
		if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
			return nil, err
		}
		replaced[filepath.Join(root, name)] = changed
	}
	document, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "overlay.json")
	return []string{"-overlay", path}, os.WriteFile(path, document, 0o644)
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.TrimSpace(string(out)), err
}
