package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// covered are the packages whose functions are counted.
var covered = []string{
	"api", "api/request", "compact", "compactor", "ingest", "jobs", "postgres", "view", "wire", "zframe",
}

// visited is how many statements of a function run where a reader has to visit it. What is smaller does what its name
// says: it converts, looks up or reports.
const visited = 10

// own are the packages that a flow goes through. Of the others, such as the readers of formats and the engine, a list
// has the functions that they are entered by.
var own = map[string][]string{
	"One append":     {"api", "request", "ingest", "postgres"},
	"One read":       {"api", "request", "view", "postgres"},
	"One compaction": {"jobs", "compactor", "postgres"},
}

// The list of a flow in docs/design.md is what a reader has to visit: every such function that runs is on it, and
// everything on it runs.
func TestFlowsPassTheFunctionsOfTheDesign(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles most of Varve to count statements; docs_test.go finds functions that are gone")
	}
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "flows")
	packages := ".,../../internal/" + strings.Join(covered, ",../../internal/")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+packages, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dsn := pgtest.New(t)
	run := exec.Command(program, pgtest.API(dsn), pgtest.Worker(dsn), pgtest.Admin(dsn))
	run.Stderr, run.Env = os.Stderr, append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	var flows map[string][]function
	if err := json.Unmarshal(out, &flows); err != nil {
		t.Fatal(err)
	}
	for flow, packages := range own {
		_, section, _ := strings.Cut(string(page), "\n## "+flow+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		listed := map[string]bool{}
		for _, m := range regexp.MustCompile("(?m)^\\d+\\. `([^`]+)`").FindAllStringSubmatch(section, -1) {
			listed[m[1]] = true
		}
		for _, f := range flows[flow] {
			name, _, _ := strings.Cut(f.Name, ".")
			if f.Size >= visited && slices.Contains(packages, name) && !listed[f.Name] {
				t.Errorf("%s: %s runs, with %d statements, and is not in docs/design.md", flow, f.Name, f.Size)
			}
			delete(listed, f.Name)
		}
		for name := range listed {
			t.Errorf("%s: %s is in docs/design.md and did not run", flow, name)
		}
	}
}
