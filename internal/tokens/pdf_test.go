package tokens_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/tokens"
)

func TestTheFileTellsHowManyPagesItHas(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("0 0 m 100 100 l S\n", 50)
	var pages strings.Builder
	for n := range 40 {
		fmt.Fprintf(&pages, "%d 0 obj<</Type /Page/Parent 2 0 R>>stream\n%sendstream endobj\n", n+3, filler)
	}
	for name, c := range map[string]struct {
		file string
		want int
	}{
		"forty pages":            {"%PDF-1.4\n2 0 obj<</Type/Pages/Kids[]>>endobj\n" + pages.String(), 40},
		"their number alone":     {"%PDF-1.4\n2 0 obj<</Type/Pages/Count 12/Kids[]>>endobj\n" + filler, 12},
		"a number that is wrong": {"%PDF-1.4\n2 0 obj<</Type/Pages/Count 90000>>endobj\n" + filler, 14},
		"compressed objects":     {"%PDF-1.7\n" + strings.Repeat("x", 250<<10), 3},
		"no PDF":                 {"PK" + filler, 0},
		"nothing":                {"", 0},
	} {
		if got := tokens.Pages([]byte(base64.StdEncoding.EncodeToString([]byte(c.file)))); got != c.want {
			t.Errorf("%s: %d pages, want %d", name, got, c.want)
		}
	}
}
