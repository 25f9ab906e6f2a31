package compact

import (
	"strings"
	"testing"
)

// TestWhatMayCountPassesAllThatCounts holds the quick look at a line to the expression that it spares.
func TestWhatMayCountPassesAllThatCounts(t *testing.T) {
	t.Parallel()
	lines := []string{
		"1 file changed", "2 files changed, 3 insertions(+)", "exit 1", "Exited with code 2", "EXIT STATUS: -1",
	}
	for _, what := range strings.Fields("passed failed failure failures error errors test tests example examples warning " +
		"warnings skipped insertion insertions deletion deletions") {
		lines = append(lines, "3 "+what, "=== 12 "+strings.ToUpper(what)+" ===")
	}
	for _, line := range lines {
		if !counted.MatchString(line) || !mayCount(line) {
			t.Errorf("%q: counts %t, may count %t", line, counted.MatchString(line), mayCount(line))
		}
	}
}
