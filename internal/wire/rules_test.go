package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestTheDocumentationHasEveryRule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	wants := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| V-") {
			continue
		}
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if len(row) != 4 || slices.Contains(row, "") {
			t.Fatalf("the row has not four columns: %q", row)
		}
		got = append(got, row[0]+" "+row[1])
		wants[row[0]] = row[2]
	}
	for _, r := range rules {
		var formats []string
		for _, f := range r.Formats {
			formats = append(formats, string(f))
		}
		want = append(want, r.Code+" "+strings.Join(formats, ", "))
		for name, n := range r.limits {
			number := regexp.MustCompile(fmt.Sprintf(`\b%d\b`, n))
			if !number.MatchString(strings.ReplaceAll(wants[r.Code], ",", "")) {
				t.Errorf("the row of %s does not name its limit of %s, %d", r.Code, name, n)
			}
		}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("docs/formats.md (-) and rules.go (+):\n%s", diff)
	}
}

func TestEveryRuleIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rules {
		switch {
		case seen[r.Code]:
			t.Errorf("%s is there twice", r.Code)
		case len(r.Formats) == 0 || r.check == nil:
			t.Errorf("%s lacks something", r.Code)
		case slices.ContainsFunc(r.Formats, func(f session.Format) bool { return !f.Valid() }):
			t.Errorf("%s is about formats that are not known", r.Code)
		}
		seen[r.Code] = true
	}
}

// TestTheDocumentationHasEveryRepair compares docs/formats.md with the kinds of repairs in the code.
func TestTheDocumentationHasEveryRepair(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, found := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[found[1]] = true
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?:repaired\(.*|Kind: )"([a-z]+_[a-z_]+)",`).FindAllStringSubmatch(string(code), -1) {
			if !documented[found[1]] {
				t.Errorf("%s makes the repair %s, which docs/formats.md does not explain", name, found[1])
			}
		}
	}
}
