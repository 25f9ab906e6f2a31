package varve

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var soakRun = regexp.MustCompile(`go test (\S+) .*-run '?([^' ]+)`)

// TestSoakNamesTestsThatExist looks for the tests of scripts/soak.sh: go test passes if it finds none.
func TestSoakNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("scripts/soak.sh")
	if err != nil {
		t.Fatal(err)
	}
	found := soakRun.FindAllStringSubmatch(string(script), -1)
	if len(found) < 8 {
		t.Fatalf("only %d lines of scripts/soak.sh run tests by name", len(found))
	}
	for _, line := range found {
		if line[1] == `"$package"` {
			continue // fuzz targets, which it lists itself
		}
		if _, err := os.Stat(line[1]); os.IsNotExist(err) {
			continue // a feature may be taken out
		}
		for _, name := range strings.Split(strings.TrimSuffix(line[2], "$"), "|") {
			if out, err := exec.Command("grep", "-rlE", "^func "+name, line[1], "--include=*_test.go").CombinedOutput(); err != nil {
				t.Errorf("%s has no test %s: %v %s", line[1], name, err, out)
			}
		}
	}
}
