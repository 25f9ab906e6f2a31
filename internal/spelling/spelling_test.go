package spelling_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/spelling"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"trim", "trim", 0}, {"enabeld", "enabled", 2}, {"", "cap", 3}, {"cap", "", 3}, {"kitten", "sitting", 3},
		{strings.Repeat("x", 1000), "cap", 1000},
	} {
		if got := spelling.Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%.20q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
