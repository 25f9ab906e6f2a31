package varve

import (
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// TestTheNoticeNamesEveryModule holds NOTICE to the modules that the programs contain.
func TestTheNoticeNamesEveryModule(t *testing.T) {
	t.Parallel()
	notice, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dependency := range strings.FieldsSeq(string(out)) {
		named := strings.Contains(string(notice), dependency)
		switch { // several modules of one family are named together
		case strings.HasPrefix(dependency, "golang.org/x/"):
			named = strings.Contains(string(notice), path.Base(dependency))
		case strings.HasPrefix(dependency, "github.com/riverqueue/river/"):
			named = strings.Contains(string(notice), strings.TrimPrefix(dependency, "github.com/riverqueue/river/"))
		case strings.HasPrefix(dependency, "go.opentelemetry.io/otel/"):
			named = strings.Contains(string(notice), strings.TrimPrefix(dependency, "go.opentelemetry.io/otel/"))
		case dependency+"/" == module:
			named = true
		}
		if !named {
			t.Errorf("NOTICE does not name %s", dependency)
		}
	}
}
