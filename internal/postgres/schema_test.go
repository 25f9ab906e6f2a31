package postgres_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/migrations"
)

var update = flag.Bool("update", false, "write schema.sql, checksums.txt and facts.txt of migrations instead of comparing")

const (
	schemaFile = "../../migrations/schema.sql"
	schemaHead = "-- The schema that the migrations make, as PostgreSQL 15 dumps it. Written by make schema; do not edit.\n\n"
	// dumpMajor wrote the file; pg_dump words some things differently from version to version.
	dumpMajor = "(PostgreSQL) 15."
)

func TestSchemaDump(t *testing.T) {
	t.Parallel()
	got := schemaHead + normalise(dump(t, pgtest.New(t)))
	if *update {
		if err := os.WriteFile(schemaFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("migrations/schema.sql (-) is not what the migrations make (+); run make schema\n%s", diff)
	}
}

func dump(t *testing.T, dsn string) string {
	t.Helper()
	var bin string
	err := openPool(t, dsn).QueryRow(t.Context(), `SELECT setting FROM pg_config WHERE name = 'BINDIR'`).Scan(&bin)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(bin, "pg_dump")
	version, err := exec.Command(program, "--version").Output()
	if err != nil {
		t.Skipf("no pg_dump beside PostgreSQL's other programs (%v): the npm packages have none", err)
	}
	if !strings.Contains(string(version), dumpMajor) {
		t.Skipf("%s writes another dialect than pg_dump %s, which wrote schema.sql", strings.TrimSpace(string(version)), dumpMajor)
	}
	out, err := exec.Command(program, "--schema-only", "--no-owner", "--dbname="+dsn).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

var (
	noise  = regexp.MustCompile(`(?m)^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\.*)\n`)
	blanks = regexp.MustCompile(`\n{3,}`)
)

// normalise leaves the statements, one blank line between them.
func normalise(dump string) string {
	return strings.Trim(blanks.ReplaceAllString(noise.ReplaceAllString(dump, ""), "\n\n"), "\n") + "\n"
}

const (
	checksumsFile = "../../migrations/checksums.txt"
	checksumsHead = "# Every migration: its version, the version that the oldest program must know which may serve a database of it, and the\n" +
		"# SHA-256 of its up and its down file. What has landed never changes. make schema adds what is new, with the oldest\n" +
		"# program of the line before; raise that by hand if programs of before fail on the new schema.\n"
	factsFile = "../../migrations/facts.txt"
	factsHead = "# What each migration adds to the catalog (+) and takes from it (-). Written by make schema; do not edit.\n"
)

func TestSchemaDumpIsOfMigrationsThatDoNotChange(t *testing.T) {
	t.Parallel()
	all, err := migrations.All()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(checksumsFile)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			listed[line[:4]] = line
		}
	}
	text := checksumsHead
	for _, f := range all {
		version, now := fmt.Sprintf("%04d", f.Version), fmt.Sprintf("%04d %04d %s %s\n", f.Version, f.Oldest, f.Up, f.Down)
		line, ok := listed[version]
		switch {
		case ok && line != now:
			t.Fatalf("migration %04d has changed. Databases have applied it as it was: take the change back and write a new "+
				"migration. If it has not landed anywhere, remove its line from migrations/checksums.txt and run make schema", f.Version)
		case !ok && !*update:
			t.Errorf("migrations/checksums.txt does not list migration %04d: run make schema", f.Version)
		}
		delete(listed, version)
		text += now
	}
	for version := range listed {
		t.Errorf("migration %s is gone: databases have applied it", version)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(checksumsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSchemaDumpOfEveryVersion(t *testing.T) {
	t.Parallel()
	text, before := factsHead, map[string]bool{}
	err := postgres.EveryVersion(t.Context(), pgtest.NewEmpty(t), func(version int, facts []string) {
		if !*update {
			want := slices.Sorted(maps.Keys(migrations.Facts(version)))
			slices.Sort(facts)
			if diff := gocmp.Diff(want, facts); diff != "" {
				t.Errorf("version %d: migrations/facts.txt (-) is not what the catalog says (+); run make schema\n%s", version, diff)
			}
			return
		}
		now := map[string]bool{}
		text += fmt.Sprintf("%04d\n", version)
		for _, fact := range facts {
			now[fact] = true
			if !before[fact] {
				text += "+" + fact + "\n"
			}
		}
		for _, fact := range slices.Sorted(maps.Keys(before)) {
			if !now[fact] {
				text += "-" + fact + "\n"
			}
		}
		before = now
	})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(factsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoMigrationThatHasLandedChanges compares with git, where there is history: nobody takes a line of checksums.txt
// away together with the file that it guards.
func TestNoMigrationThatHasLandedChanges(t *testing.T) {
	t.Parallel()
	now, err := os.ReadFile(checksumsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range landed(t) {
		was, err := exec.Command("git", "show", base+":migrations/checksums.txt").Output()
		if err != nil {
			continue // it is from before there were checksums
		}
		for line := range strings.Lines(string(was)) {
			if !strings.HasPrefix(line, "#") && !strings.Contains(string(now), line) {
				t.Errorf("a migration has changed since commit %s, where migrations/checksums.txt has the line\n%s", base, line)
			}
		}
	}
}

// landed returns the commits whose migrations must not have changed: the last release, and the one where this branch left
// main, or the one before on main itself.
func landed(t *testing.T) (commits []string) {
	t.Helper()
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", args...).Output()
		if err != nil {
			return "" // there is no such commit here, or no history
		}
		return strings.TrimSpace(string(out))
	}
	left := cmp.Or(git("merge-base", "HEAD", "origin/main"), git("merge-base", "HEAD", "main"))
	if left == git("rev-parse", "HEAD") {
		left = git("rev-parse", "--verify", "HEAD^")
	}
	for _, commit := range []string{left, git("describe", "--tags", "--abbrev=0")} {
		if commit != "" {
			commits = append(commits, commit)
		}
	}
	return commits
}
