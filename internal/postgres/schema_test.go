package postgres_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

var update = flag.Bool("update", false, "write migrations/schema.sql instead of comparing with it")

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
	if diff := cmp.Diff(string(want), got); diff != "" {
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
