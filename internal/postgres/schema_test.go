package postgres_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/migrations"
)

var update = flag.Bool("update", false, "write schema.sql of migrations instead of comparing")

const (
	schemaFile = "../../migrations/schema.sql"
	schemaHead = "-- The schema that the migrations make, as PostgreSQL 15 dumps it, without rights. Written by make schema; do not edit.\n\n"
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
	out, err := exec.Command(program, "--schema-only", "--no-owner", "--no-privileges", "--dbname="+dsn).Output()
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

// TestMigrationsOfReleasesDoNotChange: databases have applied them. Those of the next release are not listed yet.
func TestMigrationsOfReleasesDoNotChange(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../migrations/checksums.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for line := range strings.Lines(string(file)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		listed++
		var want, name string
		if _, err := fmt.Sscan(line, &want, &name); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		text, err := migrations.FS.ReadFile(name)
		if err != nil {
			t.Errorf("%s is gone: databases have applied it", name)
		} else if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != want {
			t.Errorf("%s has changed: databases have applied it as it was. Take the change back, and write a new file", name)
		}
	}
	all, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	const ofOneRelease = 2 * 2 // a pair, and one for indexes that are built CONCURRENTLY
	if listed < 36 || len(all)-listed > ofOneRelease {
		t.Errorf("%d of %d files are of releases: each release has one pair, and lists it when it is tagged", listed, len(all))
	}
}

// TestNoChecksumOfAReleaseEverChanged reads the history, where there is one: nobody takes a line of checksums.txt away,
// or changes it, together with the file that it guards.
func TestNoChecksumOfAReleaseEverChanged(t *testing.T) {
	t.Parallel()
	history, err := exec.Command("git", "log", "--format=", "--patch", "--", "../../migrations/checksums.txt").Output()
	listed := regexp.MustCompile(`(?m)^\+([0-9a-f]{64} .*)$`).FindAllStringSubmatch(string(history), -1)
	if err != nil || len(listed) == 0 {
		t.Skipf("there is no history: %v", err)
	}
	now, err := os.ReadFile("../../migrations/checksums.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range listed {
		if !strings.Contains(string(now), line[1]+"\n") {
			t.Errorf("a release had this migration, which databases have applied as it was:\n%s", line[1])
		}
	}
}
