package main

import (
	"encoding/json"
	"math"
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

// limits are how many functions of these packages a flow may pass, small ones and all. They should only go down; a few
// more run where a cache has lost its entry. A compaction has the engine and a worker's own work in it, and no limit.
var limits = map[string]int{"One append": 172, "One read": 137, "One compaction": math.MaxInt}

func TestFlowsPassTheFunctionsOfTheDesign(t *testing.T) {
	t.Parallel()
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
	var flows map[string][]string
	if err := json.Unmarshal(out, &flows); err != nil {
		t.Fatal(err)
	}
	for flow, limit := range limits {
		ran := flows[flow]
		if len(ran) > limit {
			t.Errorf("%s passes %d functions; the limit is %d: %s", flow, len(ran), limit, strings.Join(ran, " "))
		}
		_, section, _ := strings.Cut(string(page), "\n## "+flow+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		listed := regexp.MustCompile("(?m)^\\d+\\. `([^`]+)`").FindAllStringSubmatch(section, -1)
		if len(listed) < 5 {
			t.Errorf("docs/design.md lists %d functions under %q", len(listed), flow)
		}
		for _, m := range listed {
			if !slices.Contains(ran, m[1]) {
				t.Errorf("%s: %s is in docs/design.md and did not run", flow, m[1])
			}
		}
	}
}
